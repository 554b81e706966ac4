// A cluster that another process has started, with the interface of `Cluster`.
#pragma once

#include <memory>

#include "ops/cli/cluster_call.h"
#include "ops/cluster/cluster.h"

namespace atolldb::cli {

class RunningCluster final : public Cluster {
 public:
  /// `config`: from find_running.
  explicit RunningCluster(const Config& config) : Cluster(config) {}

  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                    std::chrono::milliseconds timeout) override {
    return call_node(config_, node, operation, body, timeout);
  }
  Result<Json> coordinator(ControlOperation operation, const Json& body,
                           std::chrono::milliseconds timeout) override {
    return call_coordinator(config_, operation, body, timeout);
  }
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override {
    return SessionClient::connect(config_.cluster.run_dir, node);
  }
  /// Does nothing: the process that started the cluster stops it.
  Result<void> shutdown() override { return {}; }
};

}  // namespace atolldb::cli
