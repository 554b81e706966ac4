// One node's part of a replay, on the threads of its workers. Source: [SILOR14] section 5.
//
//   files        checkpoint and log: the files of this node's part (engine/checkpoint/replay.h)
//   exchange     takes what other nodes have given, then finish_replay, when all have ended `files`
//   clean        removes the tombstones of some storages, when all nodes have replayed their files
//   end          stores the blocked records, when all nodes have cleaned their storages
//
// Each file is read by one node, which stores whole versions and tombstones at once. Updates of
// parts, appends and blocked records are given to the node with their share (R100).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "engine/checkpoint/checkpoint_plan.h"
#include "engine/checkpoint/replay.h"
#include "shared/logging/logger.h"
#include "soc/checkpoint/awaited_task.h"
#include "soc/checkpoint/node_checkpoint.h"

namespace atolldb {

/// Thread: any, for all functions. The workers run no transactions from the begin to the end of a
/// replay.
class NodeReplay {
 public:
  /// Begins to replay the files at once. REQUIRES: `resources` outlives the replay.
  NodeReplay(ReplayPlan plan, const CheckpointResources& resources, Logger logger);
  NodeReplay(const NodeReplay&) = delete;
  NodeReplay& operator=(const NodeReplay&) = delete;
  /// Cancels the replay, and waits for its threads. REQUIRES: the workers run the tasks that they
  /// have, or have ended.
  ~NodeReplay();

  /// Answers when the current step has ended, like AwaitedTask::wait. The answers after `files` and
  /// `exchange` have the ids of storages with tombstones of this node. The first one also has the
  /// given files, and a text that names the division of the files.
  void wait(AwaitedTask::Clock::time_point deadline, ControlReply reply);
  /// Begins to take the records that other nodes have given to this one. `files`: all of them.
  /// Error: code failed if the files are not replayed, or a later step has begun. REQUIRES: all
  /// nodes have replayed their files (R94, R100).
  Result<void> take(std::vector<GivenFile> files);
  /// Begins to remove the tombstones of these storages, and removes the files that this node has
  /// given. Error: code failed if `take` has not ended. REQUIRES: R93.
  Result<void> clean(std::vector<uint32_t> storages);
  /// Begins the last step, and answers {} when it has ended and the memory is free. Error: code
  /// failed if `clean` has not ended.
  Result<void> end(ControlReply reply);
  /// Lets the workers pause while this node has read more bytes of files than the others.
  void set_limit(uint64_t bytes) { state_.pace.set_limit(bytes); }
  void cancel() {
    state_.is_cancelled.store(true, std::memory_order_relaxed);
    set_limit(UINT64_MAX);  // wakes workers that pause
  }

  ReplayCounters counters() const;
  /// Returns how many bytes of checkpoint and log this node reads, or 0 while that is unknown.
  uint64_t bytes_total() const { return bytes_total_.load(std::memory_order_relaxed); }
  CheckpointPhase phase() const;

 private:
  enum class Step : uint8_t { files, exchange, clean, end };
  /// The files that this node reads.
  struct Part {
    std::vector<size_t> checkpoint_files;  // numbers of the metadata's files
    std::vector<LogReplayFile> log_files;
    std::string division;  // equal on all nodes that have divided the same files alike
  };
  using WorkerPart = std::function<void(size_t worker, WorkerEnvironment&)>;

  // The steps. Thread: that of the step.
  Result<Json> replay_files();
  Result<Json> take_given(const std::vector<GivenFile>& files);
  Result<Json> remove_all_tombstones(const std::vector<uint32_t>& storages);
  Result<Json> store_blocked();

  Result<void> make_replayers();
  Result<void> find_storages();
  Result<std::optional<CheckpointMetadata>> read_metadata() const;
  Result<std::vector<LogReplayFile>> log_files() const;
  /// Divides all files over the nodes, and counts the bytes of this node's part.
  Result<Part> divide(const CheckpointMetadata* checkpoint);
  void warn_of_large_part(std::span<const uint64_t> bytes, size_t checkpoint_files) const;
  /// Returns all log directories of this node.
  std::vector<std::string> directories() const;
  /// Removes the given files of this node, also those of an earlier start-up.
  Result<void> remove_given();
  Json tombstones_json() const;
  Json progress_json() const;

  /// Runs parts 0 to count - 1, each on the worker with that number, and returns when all have
  /// ended. A worker that has ended runs no part: `is_refused_` is then set.
  void run_on_workers(size_t count, const WorkerPart& part);
  RunTasks on_workers();
  Result<void> check_not_refused() const;
  /// Begins a step when the one before it has succeeded.
  Result<void> begin_step(Step step, AwaitedTask::Work work);
  /// Returns the thread of the current step.
  std::shared_ptr<AwaitedTask> current() const;

  const ReplayPlan plan_;
  const CheckpointResources& resources_;
  Logger logger_;
  ReplayState state_;
  std::atomic<bool> is_refused_{false};  // relaxed: read after the end of the parts
  std::atomic<uint64_t> bytes_total_{0};

  mutable std::mutex replayers_mutex_;                // for readers of counters
  std::vector<std::unique_ptr<Replayer>> replayers_;  // one per worker; changed under the mutex
  ReplayCounters finished_;  // counters of the replayers at the end; guarded by the mutex

  mutable std::mutex step_mutex_;
  Step step_ = Step::files;            // guarded by step_mutex_
  std::shared_ptr<AwaitedTask> task_;  // guarded by step_mutex_; uses all members before it
};

/// Converts counters to members of an answer.
Json to_json(const ReplayCounters& counters);

}  // namespace atolldb
