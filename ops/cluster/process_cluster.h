// A cluster of child processes, supervised by a thread of this process.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "ops/cluster/cluster.h"
#include "ops/launcher/launcher.h"
#include "shared/message/control_client.h"

namespace atolldb {

class ProcessCluster final : public Cluster {
 public:
  static Result<std::unique_ptr<Cluster>> launch(const Config& config,
                                                 const std::string& binary_dir);
  ~ProcessCluster() override;

  Result<Json> call(uint32_t node, ControlOperation operation, const Json& body,
                    std::chrono::milliseconds timeout) override;
  Result<Json> coordinator(ControlOperation operation, const Json& body,
                           std::chrono::milliseconds timeout) override;
  Result<std::unique_ptr<SessionClient>> connect_session(uint32_t node) override;
  Result<void> shutdown() override;

 private:
  explicit ProcessCluster(const Config& config);
  bool has_ended() const;
  /// Returns the answer. If the cluster has ended, replaces an error with one that names the
  /// process that died. The supervisor may notice a death shortly after the connection broke, so
  /// the function waits for that.
  Result<Json> with_reason(Result<Json> answer) const;

  Launcher* launcher_ = nullptr;  // lives on the supervisor's stack
  std::vector<std::unique_ptr<ControlClient>> nodes_;
  ControlClient coordinator_;
  mutable std::mutex mutex_;
  mutable std::condition_variable has_changed_;
  std::optional<Result<void>> ended_;  // guarded by mutex_
  std::thread supervisor_;
};

}  // namespace atolldb
