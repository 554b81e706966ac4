// Runs YCSB from another process than the nodes: clients send single-record operations as `kv.*`
// requests, with several in flight each.
#pragma once

#include <string>
#include <utility>

#include "bench/driver/client_port.h"
#include "bench/ycsb/job_input.h"

namespace atolldb::ycsb {

/// Operations: read is kv.get, update is kv.put of a whole record, and read-modify-write is kv.txn
/// with a get and a put. Updates are blind, so the check after the runs cannot detect lost ones.
class ClientPort final : public bench::ClientPort {
 public:
  /// REQUIRES: `cluster` outlives the port, and job_input has accepted the options.
  ClientPort(bench::ClusterPort& cluster, bench::ClientOptions options)
      : bench::ClientPort(cluster, std::move(options), kRunJob) {}

 private:
  Result<RunClient> client_of(const std::string& input) override;
};

}  // namespace atolldb::ycsb
