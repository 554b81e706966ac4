// One node's part of one snapshot job, with its threads. The states are: preparing, gleaning,
// ended. Mappers of any node may write to the inboxes of all nodes, so no mapper starts before all
// nodes are prepared. No part of the job uses a worker's thread.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "shared/logging/logger.h"
#include "shared/memory/gleaner_metrics.h"
#include "shared/message/control_message.h"
#include "shared/message/pending_replies.h"
#include "soc/snapshot_job/snapshot_job_work.h"

namespace atolldb {

/// Thread: any, for all functions. Replies are called by any thread, without locks.
class NodeSnapshotJob {
 public:
  using Clock = PendingReplies<>::Clock;

  /// Begins the job at once. `prepared` is called when the inboxes of this node accept records, or
  /// with the error that prevents this. `disk_reserve`: bytes that the job's files leave free in
  /// the file system. REQUIRES: `resources` outlives the job.
  NodeSnapshotJob(SnapshotPlan plan, const SnapshotJobResources& resources, uint64_t disk_reserve,
                  ControlReply prepared, Logger logger);
  NodeSnapshotJob(const NodeSnapshotJob&) = delete;
  NodeSnapshotJob& operator=(const NodeSnapshotJob&) = delete;
  /// Cancels the job if it has not ended. Keeps the file of a successful job.
  ~NodeSnapshotJob();

  uint32_t number() const { return work_.snapshot(); }
  /// Starts the capture of volatile pages. Answers with `captured`, the ranges of this node, or
  /// with an error. REQUIRES: this node is prepared, and `map` was not called.
  void capture(ControlReply reply);
  /// Starts the mappers, which read `log_bytes` together. `captured`: ranges of all nodes, which
  /// the mappers skip. `holds`: the reducers compose only after the first call of `wait` (R84).
  /// Otherwise they compose from this call on. REQUIRES: all nodes are prepared, and their captures
  /// have ended.
  void map(uint64_t log_bytes, std::vector<CapturedRange> captured, bool holds = false);
  /// Sets the part of the job's work that should be done now (JobThrottle).
  void set_goal(double goal) { work_.set_goal(goal); }
  /// Answers with "done": true and the result when the job has succeeded, or with "done": false at
  /// the deadline; both with the progress. Answers with an error if the job has failed. Permits the
  /// reducers to compose.
  void wait(Clock::time_point deadline, ControlReply reply);
  /// Gives the job up and removes its file, even if the job has succeeded. Answers {} when the file
  /// is removed.
  void discard(const ControlReply& reply);
  /// Gives the job up and removes its file, without an answer. If the job has already ended, does
  /// nothing and returns false.
  bool give_up();
  bool has_ended() const;

  SnapshotJobProgress progress() const { return work_.progress(); }
  SnapshotJobPhase phase() const;

 private:
  using Part = std::function<Result<void>(uint32_t ordinal)>;

  void run(const ControlReply& prepared);
  void serve();
  void start_capture(const ControlReply& reply);
  void start_mappers();
  void start(const char* name, uint32_t count, const Part& part);
  void fail(const Error& error);
  void end();
  // REQUIRES, for the next functions except is_wanted: mutex_ is held.
  bool is_idle() const;
  bool must_start_mappers() const { return map_wanted_ && !is_mapping_; }
  bool must_start() const { return must_start_mappers() || (capture_ && !failure_); }
  void answer_due(std::unique_lock<std::mutex>& lock);
  bool is_wanted() const;
  Result<Json> outcome() const;

  SnapshotJobWork work_;
  const std::vector<int32_t> cpus_;
  std::atomic<bool> has_warned_{false};  // warned that a thread could not be pinned
  Logger logger_;
  std::vector<std::thread> parts_;  // used only by the thread control_
  SnapshotJobResult result_;        // set by the last part; read by control_ after the part's end

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // The next members are guarded by mutex_.
  std::optional<ControlReply> capture_;  // reply to a capture that has not begun
  bool map_wanted_ = false;
  // The next two are set when map_wanted_ becomes true. From then on only control_ uses them.
  uint64_t log_bytes_ = 0;
  std::vector<CapturedRange> captured_;
  bool is_mapping_ = false;
  bool is_discarded_ = false;
  bool has_ended_ = false;
  uint32_t parts_running_ = 0;
  std::optional<Error> failure_;  // the most specific error so far
  Json answer_;                   // set when the job has succeeded
  PendingReplies<> waiting_;      // calls of `wait`, until the end of the job or their deadline
  PendingReplies<> discarding_;   // calls of `discard`, until the end of the job

  std::thread control_;  // declared after all members that it uses
};

/// Converts progress to members of an answer.
Json to_json(const SnapshotJobProgress& progress);
/// Converts a page to an entry for `atoll status` and the report of a salvage.
Json to_json(const UnreadablePage& page);

}  // namespace atolldb
