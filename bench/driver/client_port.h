// A cluster on which clients in threads of this process run a benchmark's transactions.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "bench/driver/client_options.h"
#include "bench/driver/cluster_port.h"

namespace atolldb::bench {

/// One job of the benchmark, the run, is done by clients. All other jobs run on the nodes.
class ClientPort : public ClusterPort {
 public:
  /// REQUIRES: `cluster` outlives the port; check_clients and check_client_count have accepted the
  /// options.
  ClientPort(ClusterPort& cluster, ClientOptions options, std::string run_job)
      : cluster_(cluster), options_(std::move(options)), run_job_(std::move(run_job)) {}

  uint32_t node_count() const override { return cluster_.node_count(); }
  uint32_t worker_count() const override { return cluster_.worker_count(); }
  std::string mode() const override { return cluster_.mode(); }
  std::string durability() const override { return cluster_.durability(); }
  Result<void> create_storage(const StorageSpec& spec) override {
    return cluster_.create_storage(spec);
  }
  Result<std::vector<std::string>> run_job(const std::string& name,
                                           const std::string& input) override;
  bool may_run_jobs() const override { return cluster_.may_run_jobs(); }
  uint64_t commits() override { return cluster_.commits(); }
  uint64_t epoch() override { return cluster_.epoch(); }
  uint64_t unallocated_pool_bytes() override { return cluster_.unallocated_pool_bytes(); }
  nlohmann::json acknowledgement(uint64_t epoch) override {
    return cluster_.acknowledgement(epoch);
  }

 protected:
  /// Runs one client until its end, and returns its results. `index`: its number among the clients
  /// of its node. Thread: that of the client.
  using RunClient = std::function<Result<std::string>(
      Transport& transport, uint32_t node, uint32_t index, std::atomic<bool>& must_stop)>;

  const ClientOptions& options() const { return options_; }
  /// Returns the function that runs a client. `input`: that of the job.
  virtual Result<RunClient> client_of(const std::string& input) = 0;

 private:
  ClusterPort& cluster_;
  const ClientOptions options_;
  const std::string run_job_;
};

}  // namespace atolldb::bench
