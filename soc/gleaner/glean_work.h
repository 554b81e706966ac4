// What one node does in one run of the gleaner: its inboxes, mappers, reducers and composers, and
// the file of pages that its composers share (design: stratified snapshots; rules R35-R37, R40).
// Without threads and requests, which are glean_run.h's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/gleaner/composed.h"
#include "engine/gleaner/exchange.h"
#include "engine/gleaner/glean_plan.h"
#include "engine/gleaner/mapper.h"
#include "engine/gleaner/reducer.h"
#include "engine/snapshot/shape_source.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_writer.h"
#include "engine/snapshot/stand_in.h"
#include "shared/file/reserving_file_system.h"

namespace atolldb {

/// What a run has of its node; outlives it.
struct GleanPlaces {
  uint32_t node = 0;
  FileSystem* file_system = nullptr;
  SnapshotFiles* snapshots = nullptr;
  /// Of snapshot `id`: gets the file of pages, and sorted runs meanwhile.
  std::function<std::string(uint32_t snapshot)> directory;
  /// A reducer's inbox, formatted, in this process. Null: there is no such reducer.
  std::function<std::byte*(const ReducerPlace&)> inbox;
  /// Where composers learn how volatile pages lie; null, or none: there are none yet.
  std::function<ShapeSource*()> shapes;
  /// The cluster has failed: every wait ends.
  std::function<bool()> has_failed;
};

/// What a node has made of its part.
struct NodeGleaned {
  std::vector<ComposedPartition> partitions;  // ascending
  SnapshotFilePlace file;                     // page_count 1: nothing was written, there is no file
  std::vector<UnreadablePage> unreadable;     // the first kMaxListedPages (R56)
};

/// Unreadable pages that a node lists of a run; more are only counted.
inline constexpr size_t kMaxListedPages = 1000;

struct GleanProgress {
  uint64_t bytes_read = 0;  // of log files
  uint64_t records_read = 0;
  uint64_t records_shipped = 0;
  uint64_t records_received = 0;
  uint64_t bytes_received = 0;
  uint64_t sorted_runs = 0;
  uint64_t bytes_dumped = 0;  // to sorted runs
  // By composers that have ended.
  uint64_t records_composed = 0;
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;
  uint64_t pages_unreadable = 0;  // of the base

  GleanProgress& operator+=(const GleanProgress& other);
};

class GleanWork {
 public:
  /// `disk_reserve`: bytes of the file system that its files leave free.
  GleanWork(GleanPlan plan, const GleanPlaces& places, uint64_t disk_reserve)
      : plan_(std::move(plan)), places_(places), files_(*places.file_system, disk_reserve) {}
  GleanWork(const GleanWork&) = delete;
  GleanWork& operator=(const GleanWork&) = delete;

  /// Opens what can be read of the base, makes the file, begins the inboxes. One thread, before all
  /// others.
  Result<void> prepare();
  uint32_t reducer_count() const { return static_cast<uint32_t>(reducers_.size()); }
  /// Collects, then composes all partitions of the node's reducer number `ordinal`. One thread for
  /// each.
  Result<void> reduce(uint32_t ordinal);

  /// REQUIRES: all nodes are prepared.
  Result<void> make_mappers();
  uint32_t mapper_count() const { return static_cast<uint32_t>(mappers_.size()); }
  /// One thread for each. REQUIRES: make_mappers.
  Result<void> map(uint32_t ordinal) { return mappers_[ordinal]->run(); }

  /// The file is complete and durable. REQUIRES: all of the above have succeeded and returned.
  Result<NodeGleaned> finish();
  /// Removes the file. REQUIRES: none of the above is running.
  void discard();
  /// Gives memory and sorted runs back. REQUIRES: as above.
  void release();
  /// Ends all waits for this run, of mappers of other nodes, too. Any thread.
  void give_up();

  /// Any thread.
  GleanProgress progress() const;
  uint32_t snapshot() const { return plan_.snapshot; }

 private:
  Result<void> compose_all(Reducer& reducer, const ReducerPlace& place);
  Result<void> compose_one(Reducer& reducer, size_t storage, uint32_t partition);
  void note_unreadable(const UnreadablePage& page);
  GleanProgress progress_locked() const;
  bool is_over() const {
    // Relaxed: only ends waits.
    return gives_up_.load(std::memory_order_relaxed) || places_.has_failed();
  }

  const GleanPlan plan_;
  const GleanPlaces& places_;
  ReservingFileSystem files_;  // for all that it writes
  std::string directory_;
  std::optional<SnapshotWriter> writer_;
  std::mutex writer_mutex_;
  std::atomic<bool> gives_up_{false};

  mutable std::mutex mutex_;
  // Guarded by mutex_ while they grow; then they stay.
  std::vector<std::unique_ptr<ReducerInbox>> inboxes_;  // in the order of plan_.reducers
  std::vector<ReducerInbox*> inbox_order_;
  std::vector<std::unique_ptr<Reducer>> reducers_;  // of this node
  std::vector<ReducerPlace> places_of_reducers_;
  std::vector<std::unique_ptr<Mapper>> mappers_;  // of this node
  std::vector<ComposedPartition> composed_;       // guarded by mutex_
  std::vector<UnreadablePage> unreadable_;        // guarded by mutex_
  GleanProgress last_;                            // guarded by mutex_; of what was released
};

}  // namespace atolldb
