// The snapshots that transactions of a process may begin with (rules R18, R38).
//
// A worker announces the id in its slot before it looks the snapshot up; whoever withdraws one
// takes it out of the table before it looks at the slots (all seq_cst). So either the worker does
// not find it, or the other one sees that it is in use:
//  - its SnapshotView stays until no slot of this node names it (`collect`, on every change);
//  - its files stay until no slot of any node does: the coordinator asks all nodes to withdraw it,
//    then calls snapshots_in_use, and deletes what neither that nor anything else needs.
//
// Which one is the newest is a word of the whole cluster (R61): the coordinator publishes a
// snapshot on all nodes, then stores its id in ControlSegment::readable_snapshot, then withdraws
// older ones. If each node took the newest of its own table, a client that goes from one node to
// another while a snapshot is published would read the new one first and the old one afterwards.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "engine/snapshot/snapshot_view.h"
#include "shared/error.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Ids that the slots of a node's threads name.
void snapshots_in_use(NodeShared& node, std::set<uint32_t>& ids);

class PublishedSnapshots {
 public:
  /// The newest ones, all that may be pinned, and those withdrawn that are still read.
  static constexpr uint32_t kMaxSnapshots = 128;

  /// `node`: whose workers read them. `newest`: the id that transactions begin with that name none;
  /// 0: there is none. Both outlive this.
  PublishedSnapshots(NodeShared& node, const std::atomic<uint32_t>& newest)
      : node_(&node), newest_(&newest) {}
  PublishedSnapshots(const PublishedSnapshots&) = delete;
  PublishedSnapshots& operator=(const PublishedSnapshots&) = delete;

  // -- Workers ----------------------------------------------------------------------------------
  /// The snapshot of this id, or the newest (0): good until `release`. Null: there is none.
  const SnapshotView* use(WorkerSlot& slot, uint32_t id) const;
  static void release(WorkerSlot& slot) {
    // Release: all that was read of the snapshot was read before.
    slot.snapshot.store(0, std::memory_order_release);
  }

  // -- Any thread; one at a time goes on --------------------------------------------------------
  /// Transactions that name it may begin with it from now on; those that name none when the
  /// cluster's word says so. REQUIRES: its files are open, and no file that its pages lie in is
  /// deleted before it has been withdrawn. One that is published already stays as it is. Code
  /// resources: kMaxSnapshots.
  Result<void> publish(std::unique_ptr<const SnapshotView> view);
  /// No transaction begins any more with one that is not in `ids`. Those that run go on. REQUIRES:
  /// the cluster's word names one of `ids`, or none.
  void withdraw_all_but(const std::set<uint32_t>& ids);
  /// What transactions may begin with.
  std::set<uint32_t> ids() const;
  /// What those begin with that name none; 0: none.
  uint32_t newest() const { return newest_->load(std::memory_order_relaxed); }

 private:
  struct Entry {
    std::atomic<uint32_t> id{0};               // 0: not published, or withdrawn
    std::unique_ptr<const SnapshotView> view;  // changes only while nobody can look at it
  };
  const Entry* find(uint32_t id) const;
  uint32_t newest_of_own() const;
  void collect();

  NodeShared* node_;
  const std::atomic<uint32_t>* newest_;
  std::array<Entry, kMaxSnapshots> entries_;
  mutable std::mutex mutex_;  // of those who change the table
};

}  // namespace atolldb
