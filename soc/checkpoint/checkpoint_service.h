// Serves the coordinator's requests for checkpoints and replays: checkpoint.*, replay.*
// (soc/README.md lists them).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "shared/logging/logger.h"
#include "shared/memory/checkpoint_metrics.h"
#include "shared/message/control_message.h"
#include "soc/checkpoint/node_checkpoint.h"
#include "soc/checkpoint/node_replay.h"

namespace atolldb {

/// Runs the node's part of one checkpoint at a time, and of one replay. Thread: any, for all
/// functions.
class CheckpointService {
 public:
  CheckpointService(CheckpointResources resources, Logger logger);
  CheckpointService(const CheckpointService&) = delete;
  CheckpointService& operator=(const CheckpointService&) = delete;
  ~CheckpointService() { stop(); }

  /// Serves checkpoint.* and replay.*.
  void handle(const ControlRequest& request, const ControlReply& reply);
  /// Gives the current checkpoint and the replay up, waits for their threads, and refuses later
  /// ones. REQUIRES: the workers run.
  void stop();

  /// Stores the counters of all checkpoints and of the replay so far.
  void publish(NodeCheckpointMetrics& metrics) const;

 private:
  // The next functions answer now or later, or return an error instead.
  Result<void> serve(const ControlRequest& request, const ControlReply& reply);
  Result<void> divide(const ControlRequest& request, const ControlReply& reply);
  Result<void> begin(const ControlRequest& request, const ControlReply& reply);
  Result<void> end(const ControlRequest& request, const ControlReply& reply);
  Result<void> begin_replay(const ControlRequest& request, const ControlReply& reply);
  Result<void> exchange(const ControlRequest& request, const ControlReply& reply);
  Result<void> clean(const ControlRequest& request, const ControlReply& reply);

  Result<CheckpointTask> task_of(const ControlRequest& request) const;
  /// Returns an error if no checkpoint may begin or be divided now. REQUIRES: mutex_ is held.
  Result<void> check_idle(const ControlRequest& request) const;
  /// Adds the progress of checkpoint_ to before_, and returns it. REQUIRES: mutex_ is held.
  std::shared_ptr<NodeCheckpoint> take_checkpoint();
  /// Returns the checkpoint that the request names.
  Result<std::shared_ptr<NodeCheckpoint>> checkpoint_of(const ControlRequest& request) const;
  Result<std::shared_ptr<NodeReplay>> replay_of(const ControlRequest& request) const;
  /// Begins the message of an error.
  std::string name_of(const ControlRequest& request) const;

  const CheckpointResources resources_;
  Logger logger_;
  mutable std::mutex mutex_;
  // The next members are guarded by mutex_. The pointers are shared, because a request may use an
  // object that was replaced.
  std::shared_ptr<NodeCheckpoint> checkpoint_;
  std::shared_ptr<NodeReplay> replay_;
  CheckpointProgress before_;  // progress of the checkpoints before checkpoint_
  uint64_t largest_ = 0;       // id of the latest checkpoint; ids grow (R37)
  bool is_stopped_ = false;
};

}  // namespace atolldb
