// The snapshots of a process that transactions may read (R18, R38).
//
// A worker announces the snapshot id in its slot before it looks the snapshot up in the table. A
// thread that withdraws a snapshot removes it from the table before it reads the slots. All these
// accesses are seq_cst. So either the worker does not find the snapshot, or the withdrawing thread
// sees that the snapshot is in use. Therefore:
// * the SnapshotView of a snapshot exists until no slot of this node names it (`collect` runs on
//   every change);
// * its files exist until no slot of any node names it. The coordinator asks all nodes to withdraw
//   the snapshot, then calls snapshots_in_use. It deletes the files that neither this set nor
//   anything else needs.
//
// One word of the whole cluster names the newest snapshot (R61). The coordinator publishes a
// snapshot on all nodes, then stores its id in ControlSegment::readable_snapshot, then withdraws
// older ones. Suppose that each node used the newest snapshot of its own table instead. A client
// that moves to another node during a publication could then read the new snapshot first and the
// old one afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/snapshot/snapshot_view.h"
#include "shared/base/error.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Adds the snapshot ids that the slots of a node's threads name.
void snapshots_in_use(NodeShared& node, std::set<uint32_t>& ids);

/// Table of the snapshots that the transactions of one node may read.
class PublishedSnapshots {
 public:
  /// Maximum number of snapshots in the table. They are the newest ones, all pinned ones, and
  /// withdrawn ones that workers still read.
  static constexpr uint32_t kMaxSnapshots = 128;

  /// `node`: its workers read the snapshots. `newest`: the id for transactions that name no
  /// snapshot; 0: none exists. Both outlive this object.
  PublishedSnapshots(NodeShared& node, const std::atomic<uint32_t>& newest)
      : node_(&node), newest_(&newest) {}
  PublishedSnapshots(const PublishedSnapshots&) = delete;
  PublishedSnapshots& operator=(const PublishedSnapshots&) = delete;

  // -- Workers ----------------------------------------------------------------------------------
  /// Returns the snapshot with this id, or the newest one if `id` is 0. Returns null if there is no
  /// such snapshot. The result is valid until `release`.
  const SnapshotView* use(WorkerSlot& slot, uint32_t id) const;
  static void release(WorkerSlot& slot) {
    // Release: all reads of the snapshot come before this store.
    slot.snapshot.store(0, std::memory_order_release);
  }

  // -- Any thread; the mutex serializes the calls -----------------------------------------------
  /// Lets transactions that name this snapshot use it from now on. Other transactions use it once
  /// ControlSegment::readable_snapshot names it. Does nothing if the snapshot is already published.
  /// Error: code resources if kMaxSnapshots are in the table.
  /// REQUIRES: the files of the snapshot are open, and no file with its pages is deleted before the
  /// snapshot is withdrawn.
  Result<void> publish(std::unique_ptr<const SnapshotView> view);
  /// Prevents new transactions from using snapshots that are not in `ids`. Running transactions
  /// continue.
  /// REQUIRES: ControlSegment::readable_snapshot names one of `ids`, or none.
  void withdraw_all_but(const std::set<uint32_t>& ids);
  /// Returns the ids of the published snapshots.
  std::set<uint32_t> ids() const;
  /// Returns the id for transactions that name no snapshot, or 0 if none exists.
  uint32_t newest() const { return newest_->load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<uint32_t> id{0};               // 0: not published, or withdrawn
    std::unique_ptr<const SnapshotView> view;  // changes only while no worker can find the entry
  };
  const Entry* find(uint32_t id) const;
  uint32_t newest_of_own() const;
  void collect();

  NodeShared* node_;
  const std::atomic<uint32_t>* newest_;
  std::array<Entry, kMaxSnapshots> entries_;
  mutable std::mutex mutex_;  // serializes changes of the table
};

}  // namespace atolldb
