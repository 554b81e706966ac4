// The checkpoint taker: the thread that decides when the running cluster takes a checkpoint. It
// does not know how a checkpoint is taken. A checkpoint is due for one of these reasons:
// * The interval has passed since the end of the last one.
// * A volume of log was written since the begin of the last one.
// * A logger has no room for its next file, or the savepoint lists many incarnations. Only a
//   checkpoint lets the log before it be deleted.
// * A client requests a checkpoint.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "coordinator/durability/taker_queue.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// Functions that the taker calls. All but the last two are required.
struct CheckpointTakerHooks {
  /// Takes a checkpoint on the taker's thread, and returns its id.
  std::function<Result<uint32_t>()> take;
  /// Returns the id of the newest checkpoint, or 0 if there is none.
  std::function<uint32_t()> newest;
  /// Returns whether a recovery from the newest checkpoint would replay anything from the log.
  std::function<bool()> has_new_commits;
  /// Returns the bytes of log that the busiest node has written since the cluster began.
  std::function<uint64_t()> log_bytes;
  /// Returns why the log must become shorter soon, or "" if there is room for it.
  std::function<std::string()> why_log_is_long = {};
  /// Called once, when the taker's thread begins.
  std::function<void()> on_start = {};
};

class CheckpointTaker {
 public:
  /// REQUIRES: `config` outlives the taker. Its values of type Live may change.
  CheckpointTaker(const Config::Durability& config, CheckpointTakerHooks hooks, Logger logger)
      : config_(config), hooks_(std::move(hooks)), logger_(std::move(logger)) {}
  CheckpointTaker(const CheckpointTaker&) = delete;
  CheckpointTaker& operator=(const CheckpointTaker&) = delete;
  ~CheckpointTaker() { stop(); }

  void start();
  /// Waits for the current checkpoint, which the caller should cancel before. Then answers the
  /// waiting requests with an error.
  void stop();

  /// Requests a checkpoint of all commits that are durable now. If the newest checkpoint has them
  /// all, it is the answer. Requests that arrive during a checkpoint wait for the next one.
  /// Thread: any.
  void request(TakerQueue::Reply reply) { queue_.request(std::move(reply)); }
  /// Thread: any.
  void between_runs(TakerQueue::Task task) { queue_.between_runs(std::move(task)); }

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  /// Returns the reason why a checkpoint is due now, or "" if none is due.
  std::string reason() const;
  Result<uint32_t> take(const std::string& why);

  const Config::Durability& config_;
  CheckpointTakerHooks hooks_;
  Logger logger_;

  TakerQueue queue_{"checkpoint"};
  // The next members are used only by the taker's thread.
  Clock::time_point last_at_;    // end of the last checkpoint
  uint64_t last_log_bytes_ = 0;  // bytes of log at the begin of the last checkpoint
  std::thread thread_;
};

}  // namespace atolldb
