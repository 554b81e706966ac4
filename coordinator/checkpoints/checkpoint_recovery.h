// Recovery from a checkpoint and the log after it. All nodes replay their parts of the files at the
// same time, as described in engine/checkpoint/README.md. Source: [SILOR14] section 5.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/node_calls.h"
#include "engine/checkpoint/checkpoint_plan.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Thread: the one that opens the cluster, unless a function says otherwise.
class CheckpointRecovery {
 public:
  /// REQUIRES: all references outlive the recovery.
  CheckpointRecovery(const Config& config, const NodeCall& call_node, EpochClock& clock)
      : config_(config), call_node_(call_node), clock_(clock) {}

  /// Replays the plan on all nodes. On return all records are in memory, and the settled epoch is
  /// at least the cut. REQUIRES: no transaction has run; the clock ticks. Errors: those of the
  /// nodes; the cluster cannot start then.
  Result<void> run(const ReplayPlan& plan);

  /// Returns the sums of the nodes' counts so far: see replay.wait in soc/README.md. Thread: any.
  Json progress() const;
  /// Returns whether all nodes have read their files, and exchange records now, or a later step is
  /// under way. Thread: any.
  bool is_past_files() const { return is_past_files_.load(std::memory_order_relaxed); }
  /// Returns the time since `run` began, or its duration once it has ended. Thread: any.
  std::chrono::nanoseconds time() const;

 private:
  /// Lets each node take what the others have given to it. `ended`: the answers after the files.
  Result<void> exchange(const std::vector<Json>& ended);
  Result<void> clean(const std::set<uint32_t>& storages);
  /// Waits until all nodes have done the work of the latest request. Returns their last answers.
  /// `keeps_step`: the nodes read files, and none may be far ahead of the others (replay_limit).
  Result<std::vector<Json>> await_nodes(bool keeps_step = false);

  const Config& config_;
  const NodeCall& call_node_;
  EpochClock& clock_;
  // Nanoseconds of steady_clock; 0: not yet. Relaxed: for display.
  std::atomic<int64_t> began_ns_{0};
  std::atomic<int64_t> ended_ns_{0};
  std::atomic<bool> is_past_files_{false};  // relaxed: for display
  mutable std::mutex mutex_;
  std::vector<Json> progress_;  // latest counts of each node; guarded by mutex_
};

/// A node may be ahead of the slowest one by this many bytes, or by 1/32 of all bytes if that is
/// more.
inline constexpr uint64_t kReplayWindowBytes = uint64_t{64} << 20;

/// Returns how many bytes of files the node may read now, so that the nodes replay in step and make
/// equal numbers of pages. `progress`: latest counts of each node. `has_ended`: nodes that have
/// replayed all files, or have failed.
uint64_t replay_limit(const std::vector<Json>& progress, const std::vector<bool>& has_ended,
                      uint32_t node);

/// The progress of a recovery.
struct ReplayProgress {
  uint64_t bytes = 0;  // of checkpoint files and log files
  uint64_t bytes_total = 0;

  /// Returns the percentage of the bytes that were read, 100 if there are none.
  uint32_t percent() const {
    return bytes >= bytes_total ? 100 : static_cast<uint32_t>(bytes * 100 / bytes_total);
  }
};
ReplayProgress replay_progress_of(const Json& counts);

/// Returns the seconds until all bytes are read at the rate so far, or -1 if that is unknown.
int64_t replay_seconds_left(const ReplayProgress& progress, std::chrono::nanoseconds elapsed);

}  // namespace atolldb
