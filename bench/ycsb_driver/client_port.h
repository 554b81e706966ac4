// Runs YCSB from another process than the nodes: clients send single-record operations as `kv.*`
// requests, with several in flight each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/driver/cluster_port.h"
#include "bench/ycsb/job_input.h"
#include "bench/ycsb_driver/options.h"

namespace atolldb::ycsb {

/// A cluster of which the job ycsb.run is done by clients in threads of this process. All other
/// jobs run on the nodes.
///
/// Operations: read is kv.get, update is kv.put of a whole record, and read-modify-write is kv.txn
/// with a get and a put. Updates are blind, so the check after the runs cannot detect lost ones.
class ClientPort final : public bench::ClusterPort {
 public:
  /// REQUIRES: `cluster` outlives the port, and check_clients has accepted the options.
  ClientPort(bench::ClusterPort& cluster, const ClientOptions& options)
      : cluster_(cluster), options_(options) {}

  uint32_t node_count() const override { return cluster_.node_count(); }
  uint32_t worker_count() const override { return cluster_.worker_count(); }
  std::string mode() const override { return cluster_.mode(); }
  std::string durability() const override { return cluster_.durability(); }
  Result<void> create_storage(const bench::StorageSpec& spec) override {
    return cluster_.create_storage(spec);
  }
  Result<std::vector<std::string>> run_job(const std::string& name,
                                           const std::string& input) override;
  uint64_t commits() override { return cluster_.commits(); }
  uint64_t epoch() override { return cluster_.epoch(); }
  uint64_t unallocated_pool_bytes() override { return cluster_.unallocated_pool_bytes(); }
  nlohmann::json acknowledgement(uint64_t epoch) override {
    return cluster_.acknowledgement(epoch);
  }

 private:
  bench::ClusterPort& cluster_;
  const ClientOptions options_;
};

}  // namespace atolldb::ycsb
