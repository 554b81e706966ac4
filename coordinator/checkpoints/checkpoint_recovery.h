// Recovery from a checkpoint and the log after it. All nodes replay their parts of the files at the
// same time, as described in engine/checkpoint/README.md. Source: [SILOR14] section 5.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"
#include "coordinator/node_calls.h"
#include "engine/checkpoint/checkpoint_plan.h"
#include "engine/checkpoint/given_records.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb {

/// Steps of a recovery, for display.
enum class RecoveryStep : uint8_t { files, exchange, clean };

/// Returns what the nodes do in this step. A single node gives no records to others.
std::string_view text_of(RecoveryStep step, size_t node_count);

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
  /// Thread: any.
  RecoveryStep step() const { return step_.load(std::memory_order_relaxed); }
  /// Returns the time since `run` began, or its duration once it has ended. Thread: any.
  std::chrono::nanoseconds time() const;

 private:
  /// Lets each node take what the others have given to it. `ended`: the answers after the files.
  Result<void> exchange(const std::vector<Json>& ended);
  Result<void> let_take(uint32_t node, const std::vector<GivenFile>& files);
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
  std::atomic<RecoveryStep> step_{RecoveryStep::files};  // relaxed: for display
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
  uint64_t bytes = 0;        // of checkpoint files and log files
  uint64_t bytes_total = 0;  // 0: unknown yet, or there are none

  /// Returns the percentage of the bytes that were read. It is 100 only when all nodes have read
  /// their files: with the last byte, a node has not yet stored all records.
  uint32_t percent(RecoveryStep step) const {
    constexpr uint64_t kMost = 99;
    if (step != RecoveryStep::files) return 100;
    if (bytes_total == 0) return 0;
    return static_cast<uint32_t>(std::min(kMost, bytes * 100 / bytes_total));
  }
};
ReplayProgress replay_progress_of(const Json& counts);

/// Returns the seconds until all bytes are read at the rate so far, or -1 if that is unknown.
int64_t replay_seconds_left(const ReplayProgress& progress, std::chrono::nanoseconds elapsed);

}  // namespace atolldb
