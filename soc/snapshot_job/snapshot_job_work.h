// The work of one node in one snapshot job: inboxes, mappers, reducers, composers, and the file of
// pages that the composers share (R35, R36, R37, R40). Threads and requests are in
// node_snapshot_job.h.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/format/stand_in.h"
#include "engine/gleaner/exchange.h"
#include "engine/gleaner/mapper.h"
#include "engine/gleaner/reducer.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/file/file_system_wrappers.h"
#include "shared/memory/gleaner_metrics.h"
#include "shared/process/work_clock.h"
#include "soc/snapshot_job/job_throttle.h"

namespace atolldb {

class SnapshotCache;

/// The resources of the node that a job uses. They outlive the job.
struct SnapshotJobResources {
  uint32_t node = 0;
  FileSystem* file_system = nullptr;
  SnapshotFiles* snapshots = nullptr;
  const SnapshotCache* cache = nullptr;  // has pages that composers need not read; may be null
  /// Returns the directory for this snapshot's file of pages and for the sorted runs of its job.
  std::function<std::string(uint32_t snapshot)> directory;
  /// Returns the address of a reducer's formatted inbox in this process, or null if there is no
  /// such reducer.
  std::function<std::byte*(const ReducerPlace&)> inbox;
  /// Returns the source of the fence maps for composers, or null if there are no volatile pages
  /// yet. Empty: there are never volatile pages.
  std::function<FenceMapSource*()> fence_maps;
  /// Returns whether the cluster has failed. If it has, every wait of the job ends.
  std::function<bool()> has_failed;
  std::vector<int32_t> cpus = {};  // CPUs of mappers and reducers; empty: any
  SnapshotWorkTimes* times =
      nullptr;  // the job adds the processor time of its threads; may be null
  JobThrottleTimes throttle = {};
};

/// The result of a node's part of a job.
struct SnapshotJobResult {
  std::vector<ComposedPartition> partitions;  // in ascending order
  SnapshotFilePlace file;                  // page_count 1: no page was written and no file exists
  std::vector<UnreadablePage> unreadable;  // the first kMaxListedPages unreadable pages (R56)
};

/// A node lists at most this many unreadable pages of a job. It only counts the others.
inline constexpr size_t kMaxListedPages = 1000;

class SnapshotJobWork {
 public:
  /// `disk_reserve`: bytes that the job's files leave free in the file system.
  SnapshotJobWork(SnapshotPlan plan, const SnapshotJobResources& resources, uint64_t disk_reserve);
  SnapshotJobWork(const SnapshotJobWork&) = delete;
  SnapshotJobWork& operator=(const SnapshotJobWork&) = delete;

  /// Opens the readable files of the base, makes the new file, begins the inboxes. Thread: one,
  /// before all other calls.
  Result<void> prepare();
  uint32_t reducer_count() const { return static_cast<uint32_t>(reducers_.size()); }
  /// Collects the records of the node's reducer `ordinal`, then composes all its partitions.
  /// REQUIRES: prepare has succeeded. Thread: one for each reducer.
  Result<void> reduce(uint32_t ordinal);
  /// Lets the reducers compose. They wait for the first call, because mappers of other nodes may
  /// have sent all records before this node knows whether the job overlaps an install (R84).
  /// Thread: any.
  void permit_composing();

  /// Captures volatile pages of the partitions that the node composes (R75). Returns the ranges
  /// whose log records all mappers leave out, in the order of do_ascend. Thread: one, before `map`
  /// on any node. REQUIRES: prepare has succeeded.
  Result<std::vector<CapturedRange>> capture();
  /// Makes the mappers of the node, which read `log_bytes` together. `captured`: ranges of all
  /// nodes. Called once. REQUIRES: all nodes are prepared.
  Result<void> make_mappers(uint64_t log_bytes, std::vector<CapturedRange> captured);
  uint32_t mapper_count() const { return static_cast<uint32_t>(mappers_.size()); }
  /// Runs the node's mapper `ordinal`. REQUIRES: make_mappers has succeeded. Thread: one for each
  /// mapper.
  Result<void> map(uint32_t ordinal);

  /// Completes the file and makes it durable. REQUIRES: `reduce` and `map` have succeeded for all
  /// reducers and mappers.
  Result<SnapshotJobResult> finish();
  /// Removes the file. REQUIRES: none of the functions above is running.
  void discard();
  /// Frees memory and removes sorted runs. REQUIRES: none of the functions above is running.
  void release();
  /// Ends all waits for this job, including those of mappers on other nodes. Thread: any.
  void give_up();
  /// Sets the part of the work that should be done now (JobThrottle). Thread: any.
  void set_goal(double goal) { throttle_.set_goal(goal); }

  /// Thread: any.
  SnapshotJobProgress progress() const;
  uint32_t snapshot() const { return plan_.snapshot; }

 private:
  class ReducerPace;

  /// Objects that a reducer's thread uses for all its composers.
  struct Composing;

  Result<void> await_permission();
  Result<void> compose_all(Composing& composing, const ReducerPlace& place);
  Result<void> compose_one(Composing& composing, size_t storage, uint32_t partition);
  Result<void> capture_partition(FenceMapSource& source, size_t storage, uint32_t partition,
                                 std::vector<CapturedRange>& ranges);
  size_t max_captured_ranges() const;
  void record_unreadable(const UnreadablePage& page);
  SnapshotJobProgress progress_locked() const;
  bool is_over() const {
    // Relaxed: the flag only ends waits, and guards no data.
    return gives_up_.load(std::memory_order_relaxed) || resources_.has_failed();
  }

  const SnapshotPlan plan_;
  const SnapshotJobResources& resources_;
  SyncingFileSystem syncing_;  // bounds unsynced bytes, for which a log's sync may wait
  ReservingFileSystem files_;  // wraps syncing_; for all files that the job writes
  std::string directory_;
  std::optional<SnapshotWriter> writer_;
  std::mutex writer_mutex_;
  std::atomic<bool> gives_up_{false};
  JobThrottle throttle_;
  std::mutex hold_mutex_;
  std::condition_variable permitted_;
  bool may_compose_ = false;  // guarded by hold_mutex_
  // Records that composers have applied, and records that merges have elided.
  std::atomic<uint64_t> records_composed_{0};
  std::atomic<uint64_t> records_elided_{0};

  std::vector<CapturedRange> captured_;  // ranges of all nodes; constant while mappers run

  mutable std::mutex mutex_;
  // The next six members are guarded by mutex_ while elements are added. Afterwards they do not
  // change until `release`.
  std::vector<std::unique_ptr<ReducerInbox>> inboxes_;  // in the order of plan_.reducers
  std::vector<ReducerInbox*> inbox_order_;
  std::vector<std::unique_ptr<Reducer>> reducers_;  // reducers of this node
  std::vector<ReducerPlace> places_of_reducers_;
  std::vector<std::unique_ptr<Mapper>> mappers_;  // mappers of this node
  std::deque<WorkClock> mapper_clocks_;           // one for each of mappers_
  /// Pages that this node has captured, by index of the storage and partition. Guarded by mutex_
  /// while it grows. Constant from the first mapper on.
  std::map<std::pair<size_t, uint32_t>, std::vector<CapturedPage>> captured_pages_;
  std::vector<ComposedPartition> composed_;  // guarded by mutex_
  std::vector<UnreadablePage> unreadable_;   // guarded by mutex_
  // Counts of the capture and of composers, and later of released mappers and reducers.
  SnapshotJobProgress last_;  // guarded by mutex_
};

}  // namespace atolldb
