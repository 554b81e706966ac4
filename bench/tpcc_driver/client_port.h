// Runs TPC-C from another process than the nodes: clients send the inputs of transactions to the
// procedure tpcc.call, with several requests in flight each.
#pragma once

#include <string>
#include <utility>

#include "bench/driver/client_port.h"
#include "bench/tpcc/job_input.h"

namespace atolldb::tpcc {

/// A client draws the home warehouse of each transaction from those of its node.
class ClientPort final : public bench::ClientPort {
 public:
  /// REQUIRES: `cluster` outlives the port, and check_options has accepted the options.
  ClientPort(bench::ClusterPort& cluster, bench::ClientOptions options)
      : bench::ClientPort(cluster, std::move(options), kRunJob) {}

 private:
  Result<RunClient> client_of(const std::string& input) override;
};

}  // namespace atolldb::tpcc
