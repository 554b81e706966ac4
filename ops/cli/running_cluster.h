// A cluster that another process started, behind the same interface as one of our own.
#pragma once

#include <memory>

#include "ops/cluster/cluster.h"
#include "shared/message/control_client.h"
#include "shared/process/run_paths.h"

namespace atolldb::cli {

class RunningCluster final : public Cluster {
 public:
  /// `config`: as find_running gave it.
  explicit RunningCluster(const Config& config) : Cluster(config) {}

  Result<Json> call(uint32_t node, std::string_view op, const Json& body,
                    std::chrono::milliseconds timeout) override {
    return ControlClient(node_endpoint(config_, node)).call(op, body, timeout);
  }
  Result<Json> coordinator(std::string_view op, const Json& body,
                           std::chrono::milliseconds timeout) override {
    return ControlClient(config_.control.endpoint).call(op, body, timeout);
  }
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override {
    return SessionClient::connect(config_.cluster.run_dir, node);
  }
  /// It goes on: whoever started it stops it.
  Result<void> shutdown() override { return {}; }
};

}  // namespace atolldb::cli
