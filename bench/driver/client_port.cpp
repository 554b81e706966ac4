#include "bench/driver/client_port.h"

#include <memory>
#include <thread>

#include "shared/base/try.h"

namespace atolldb::bench {

Result<std::vector<std::string>> ClientPort::run_job(const std::string& name,
                                                     const std::string& input) {
  if (name != run_job_) return cluster_.run_job(name, input);
  ATOLL_ASSIGN(const RunClient run_client, client_of(input));
  const uint32_t nodes = node_count();
  const uint32_t clients = options_.clients == 0 ? worker_count() : options_.clients;
  const ClientRoute route{options_.is_network(), options_.key_file};
  std::vector<std::unique_ptr<Transport>> transports;
  for (uint32_t i = 0; i < clients; ++i) {
    ATOLL_ASSIGN(auto transport, cluster_.connect(i % nodes, route));
    transports.push_back(std::move(transport));
  }
  std::vector<Result<std::string>> outputs(clients);
  std::atomic<bool> must_stop{false};
  {
    std::vector<std::jthread> threads;
    for (uint32_t i = 0; i < clients; ++i) {
      threads.emplace_back(
          [&, i] { outputs[i] = run_client(*transports[i], i % nodes, i / nodes, must_stop); });
    }
  }
  std::vector<std::string> texts;
  for (Result<std::string>& output : outputs) {
    if (!output) return std::unexpected(output.error());
    texts.push_back(*std::move(output));
  }
  return texts;
}

}  // namespace atolldb::bench
