// Walks over the volatile records of a range, page by page, and copies them to a checkpoint.
// Source: [SILOR14] section 4.
//
// A walk reads each record optimistically, and writes nothing to shared data but the begin epoch of
// its own thread. Transactions change, move and remove records meanwhile. So each record is as of
// another instant, and recovery always needs the log as well.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/key_range.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The rules of what a checkpoint skips (R90).
struct CheckpointRules {
  uint64_t replay_epoch = 0;

  /// Returns whether a record of an array or tree may be skipped.
  bool skips(Vid vid) const;
};

/// Returns the replay epoch of a checkpoint whose walks begin now: no commit of an earlier epoch is
/// still in progress (R88).
uint64_t replay_epoch_of_checkpoint(const EpochBlock& epochs);
/// Returns the end epoch of a checkpoint whose walks have ended: no copied record is newer (R89).
uint64_t end_epoch_of_checkpoint(const EpochBlock& epochs);

struct WalkCounters {
  uint64_t pages = 0;
  uint64_t records = 0;  // copied
  uint64_t skipped = 0;  // records of heaps, because the log has them

  void add(const WalkCounters& other) {
    pages += other.pages;
    records += other.records;
    skipped += other.skipped;
  }
};

/// A walk over one range. Thread: that of the worker context.
class RangeWalk {
 public:
  virtual ~RangeWalk() = default;
  RangeWalk(const RangeWalk&) = delete;
  RangeWalk& operator=(const RangeWalk&) = delete;

  /// Copies the records of the next page to the writer. Sets `is_at_end` if there is no further
  /// page. Returns ok or cluster_failed. A storage that was dropped meanwhile has no further page.
  /// REQUIRES: the worker has published its begin epoch, and holds no page from an earlier call.
  virtual Status copy_page(CheckpointWriter& writer, bool& is_at_end) = 0;
  const WalkCounters& counters() const { return counters_; }

 protected:
  RangeWalk(WorkerContext& worker, StorageControl& storage, const CheckpointRules& rules)
      : worker_(worker), storage_(storage), id_(storage.id), rules_(rules) {}

  bool is_ready() const;

  WorkerContext& worker_;
  StorageControl& storage_;
  uint32_t id_;
  CheckpointRules rules_;
  WalkCounters counters_;
};

// Walks of the storage types. REQUIRES: the storage has that type (CHECK).
std::unique_ptr<RangeWalk> make_array_walk(WorkerContext& worker, StorageControl& storage,
                                           const CheckpointRules& rules, const KeyRange& range);
std::unique_ptr<RangeWalk> make_heap_walk(WorkerContext& worker, StorageControl& storage,
                                          const CheckpointRules& rules, const KeyRange& range);
std::unique_ptr<RangeWalk> make_tree_walk(WorkerContext& worker, StorageControl& storage,
                                          const CheckpointRules& rules, const KeyRange& range);

/// Returns a walk over the range of the storage. REQUIRES: no page of the storage is in a snapshot
/// only (CHECK in the walk).
std::unique_ptr<RangeWalk> walk_range(WorkerContext& worker, StorageControl& storage,
                                      const CheckpointRules& rules, const KeyRange& range);

/// Called after each page with the counters of the range so far. Returns false to give the
/// checkpoint up.
using ContinueCopy = std::function<bool(const WalkCounters&)>;

/// Copies the whole range of the storage to the writer, and lets it write between pages. Copies
/// nothing if there is no such storage. The worker has no begin epoch during I/O and on return.
/// Errors: those of the file system; code failed if the cluster has failed, or if `continues` has
/// returned false.
Result<WalkCounters> copy_range(WorkerContext& worker, uint32_t storage_id,
                                const CheckpointRules& rules, const KeyRange& range,
                                CheckpointWriter& writer, const ContinueCopy& continues = {});

}  // namespace atolldb
