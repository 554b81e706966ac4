#include "shared/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <netdb.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/unique_fd.h"
#include "shared/metrics/process_metrics.h"

namespace atolldb {
namespace {

/// Opens and closes a connection, to wake the server. The result does not matter.
void knock(const std::string& listen, int port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(listen.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) return;
  const UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd.is_open()) {
    static_cast<void>(connect(fd.get(), found->ai_addr, found->ai_addrlen));
  }
  freeaddrinfo(found);
}

}  // namespace

Result<std::unique_ptr<MetricsExposer>> MetricsExposer::start(
    const std::string& listen, uint16_t port,
    std::shared_ptr<prometheus::Collectable> collectable) {
  CHECK(collectable != nullptr);
  // The Prometheus library reports errors by exceptions. This function turns them into an Error.
  try {
    auto exposer = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", endpoint_text(listen, port), "num_threads", std::to_string(kThreads),
        "request_timeout_ms", std::to_string(kRequestTimeout.count())});
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty()) throw std::runtime_error("no port");
    Collectables collectables = {std::move(collectable), std::make_shared<ProcessMetrics>()};
    for (const auto& each : collectables) exposer->RegisterCollectable(each);
    return std::unique_ptr<MetricsExposer>(
        new MetricsExposer(std::move(exposer), std::move(collectables), listen, ports.front()));
  } catch (const std::exception&) {
    return make_error(ExitCode::resources,
                      "metrics.base_port: cannot listen on " + endpoint_text(listen, port) +
                          ": is another process using the port? Set metrics.base_port to a free "
                          "range, or to 0 for any free port");
  }
}

MetricsExposer::MetricsExposer(std::unique_ptr<prometheus::Exposer> exposer,
                               Collectables collectables, std::string listen, int port)
    : collectables_(std::move(collectables)),
      exposer_(std::move(exposer)),
      listen_(std::move(listen)),
      port_(port),
      endpoint_(endpoint_text(listen_, port)) {
  CHECK(port_ > 0 && port_ <= UINT16_MAX);
}

MetricsExposer::~MetricsExposer() {
  CHECK(exposer_ != nullptr);
  end_server(listen_, port_, [this] { exposer_.reset(); });
}

std::string MetricsExposer::endpoint_text(const std::string& listen, int port) {
  CHECK(!listen.empty());
  const bool is_ipv6 = listen.find(':') != std::string::npos && listen.front() != '[';
  return (is_ipv6 ? "[" + listen + "]" : listen) + ":" + std::to_string(port);
}

void MetricsExposer::end_server(const std::string& listen, int port,
                                const std::function<void()>& end) {
  CHECK(end && port > 0);
  std::atomic<bool> ended{false};
  std::thread ending([&] {
    end();
    ended.store(true, std::memory_order_relaxed);  // the join orders all other accesses
  });
  while (!ended.load(std::memory_order_relaxed)) {
    knock(listen, port);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  ending.join();
}

}  // namespace atolldb
