// Layout of a node's `shared` segment: the data that other processes read, and the wait blocks.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/epoch_stages.h"
#include "shared/memory/segment_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

enum class NodeState : uint32_t { starting = 0, attached, recovering, running, draining, stopped };

/// Number of slots after those of the workers. They are for threads of the node that dereference
/// pages but run no transactions: the housekeeper, and threads that visit pages for snapshots.
inline constexpr uint32_t kAuxiliarySlots = 1 + kMaxInstallers;
static_assert(kMaxWorkersPerNode + kAuxiliarySlots <= 256);

/// Epochs of one thread. Writer: that thread. Readers: the coordinator (each tick).
struct WorkerSlot {
  /// Epoch at the begin of the running or latest transaction. The thread stores kIdleEpoch before
  /// it blocks (R9).
  alignas(64) std::atomic<uint64_t> begin_epoch;
  /// Id of the snapshot that the running transaction reads; 0: no snapshot (R18). The files of that
  /// snapshot are not deleted (R38).
  std::atomic<uint64_t> snapshot;
  /// 1 while the worker has no task, and sleeps or is about to (IdleWorker); else 0. Writers: also
  /// threads of the node that give a task to a worker that sleeps. Readers: workers of all nodes,
  /// when they become idle.
  std::atomic<uint32_t> is_idle;
  /// Lower bound of the epoch of the commit in progress; 0: no commit.
  alignas(64) std::atomic<uint64_t> in_commit_epoch;
};
static_assert(sizeof(WorkerSlot) == 128);

/// Ring of pages freed remotely, one per pair of sending node and owner. Single producer: a thread
/// of the sender, under its node-private lock. Single consumer: a thread of the owner, under its
/// own lock.
struct ReturnRing {
  static constexpr uint32_t kCapacity = 2048;
  alignas(64) std::atomic<uint64_t> head;  // writer: owner
  alignas(64) std::atomic<uint64_t> tail;  // writer: sender
  alignas(64) std::atomic<uint64_t> slots[kCapacity];

  /// Thread: sender. Returns false if the ring is full; the sender then keeps the page.
  bool push(VolatilePointer page) {
    DCHECK(!page.is_null());
    const uint64_t at = tail.load(std::memory_order_relaxed);
    // Acquire pairs with pop's release: the consumer has read the slot that this entry overwrites.
    const uint64_t waiting = at - head.load(std::memory_order_acquire);
    DCHECK(waiting <= kCapacity);  // only this thread moves the tail, so the head is not past it
    if (waiting >= kCapacity) return false;
    slots[at % kCapacity].store(page.word(), std::memory_order_relaxed);
    // Release pairs with pop's acquire: the slot is filled.
    tail.store(at + 1, std::memory_order_release);
    return true;
  }

  /// Thread: owner. Returns null if the ring is empty.
  VolatilePointer pop() {
    const uint64_t at = head.load(std::memory_order_relaxed);
    const uint64_t end = tail.load(std::memory_order_acquire);
    DCHECK(end - at <= kCapacity);  // only this thread moves the head
    if (at == end) return VolatilePointer();
    const VolatilePointer page(slots[at % kCapacity].load(std::memory_order_relaxed));
    DCHECK(!page.is_null());
    head.store(at + 1, std::memory_order_release);
    return page;
  }
};

inline constexpr uint32_t kMaxLoggersPerNode = 16;

/// Value of NodeShared::page_budget without a limit. No node ever takes half as many pages.
inline constexpr int64_t kUnlimitedPages = INT64_MAX;

/// Progress of a logger, read by the coordinator. Writer: that logger.
struct LoggerSlot {
  /// Last epoch whose marker is synced. Release: everything up to this epoch is on the device.
  alignas(64) std::atomic<uint64_t> durable_epoch;
  std::atomic<uint32_t> failure;  // ExitCode of a failed write or sync; 0: no failure
  uint32_t spare;
  /// Times of the stages of the latest batch, and the end of its sync. They are stored before
  /// durable_epoch, relaxed: a reader may see those of a later batch. For statistics only.
  std::atomic<uint64_t> stage_ns[kLoggerStageCount];
  std::atomic<uint64_t> synced_at_ns;
};
static_assert(sizeof(LoggerSlot) == 64);
static_assert(sizeof(ReturnRing) == 128 + ReturnRing::kCapacity * 8);

/// Fixed part of the segment. Slots, wait blocks and return rings follow at the offsets below.
struct NodeShared {
  SegmentHeader header;
  alignas(64) std::atomic<uint32_t> state;  // NodeState
  uint32_t worker_count;
  uint32_t slot_count;  // workers + kAuxiliarySlots
  uint64_t slots_offset;
  uint64_t wait_blocks_offset;   // one block for each slot
  uint64_t return_rings_offset;  // one ring for each sending node, indexed by its id
  alignas(64) std::atomic<uint64_t> heartbeat;
  alignas(64) std::atomic<uint64_t> pages_total;  // pool gauges. Writer: the node
  std::atomic<uint64_t> pages_free;
  std::atomic<uint64_t> pages_taken;        // by transactions, without those given back unused
  std::atomic<uint64_t> unallocated_bytes;  // part of the pool that has no memory yet
  /// Number of pages that the node's workers may still take; negative: they must wait. The
  /// coordinator adds to it every few milliseconds while there is a limit (PageRegulator). Each
  /// worker subtracts the pages that it has taken, once per batch.
  alignas(64) std::atomic<int64_t> page_budget;
  std::atomic<uint32_t> page_signal;  // changes when the budget is not negative any more
  uint32_t spare;
  /// Pages per second; 0: no limit. Writer: the coordinator. The node's threads then take smaller
  /// batches, and collect what other nodes return.
  std::atomic<uint64_t> page_limit;
  /// Latest epoch in which a worker of the node has committed records (R27). Writers: all workers
  /// of the node, once per epoch.
  alignas(64) std::atomic<uint64_t> dirty_epoch;
  uint32_t logger_count;  // 0: durability off
  LoggerSlot loggers[kMaxLoggersPerNode];

  template <typename T>
  T* at(uint64_t offset) {
    DCHECK(offset >= sizeof(NodeShared) && offset % alignof(T) == 0);
    return reinterpret_cast<T*>(reinterpret_cast<char*>(this) + offset);
  }
  WorkerSlot& slot(uint32_t ordinal) {
    DCHECK(ordinal < slot_count);
    return at<WorkerSlot>(slots_offset)[ordinal];
  }
  WaitBlock* wait_blocks() { return at<WaitBlock>(wait_blocks_offset); }
  ReturnRing& return_ring(uint32_t sender) {
    DCHECK(sender < kMaxNodes);
    return at<ReturnRing>(return_rings_offset)[sender];
  }
};

/// Size in bytes and offsets of a node's segment. `format` writes them into zeroed memory.
struct NodeSharedLayout {
  uint32_t worker_count = 1;
  uint32_t node_count = 1;
  uint32_t logger_count = 0;

  uint32_t slot_count() const { return worker_count + kAuxiliarySlots; }
  uint64_t slots_offset() const { return (sizeof(NodeShared) + 4095) & ~uint64_t{4095}; }
  uint64_t wait_blocks_offset() const {
    return (slots_offset() + slot_count() * sizeof(WorkerSlot) + 4095) & ~uint64_t{4095};
  }
  uint64_t return_rings_offset() const {
    return (wait_blocks_offset() + slot_count() * sizeof(WaitBlock) + 4095) & ~uint64_t{4095};
  }
  uint64_t bytes() const {
    return return_rings_offset() + uint64_t{node_count} * sizeof(ReturnRing);
  }
  void format(NodeShared& node) const {
    CHECK(worker_count >= 1 && worker_count <= kMaxWorkersPerNode);
    CHECK(node_count >= 1 && node_count <= kMaxNodes);
    CHECK(logger_count <= kMaxLoggersPerNode);
    CHECK(node.slot_count == 0 && node.slots_offset == 0);  // not formatted before
    node.worker_count = worker_count;
    node.slot_count = slot_count();
    node.logger_count = logger_count;
    node.slots_offset = slots_offset();
    node.wait_blocks_offset = wait_blocks_offset();
    node.return_rings_offset = return_rings_offset();
    node.page_budget.store(kUnlimitedPages, std::memory_order_relaxed);
    for (uint32_t i = 0; i < slot_count(); ++i) {
      node.slot(i).begin_epoch.store(kIdleEpoch, std::memory_order_relaxed);
    }
  }
};

/// Returns the latest epoch in which a worker of one of these nodes has committed records, or 0 if
/// no worker has. A commit makes its epoch dirty before it unlocks its records. So every commit
/// that was acknowledged, or whose unlocked records the caller has seen, is of this epoch or an
/// earlier one. The coordinator requests a marker for this epoch once it has ended, so a wait for
/// its durability ends.
inline uint64_t latest_dirty_epoch(std::span<NodeShared* const> nodes) {
  uint64_t dirty = 0;
  for (NodeShared* node : nodes) {
    // seq_cst pairs with the compare-and-swap of the worker that raised the word.
    const uint64_t epoch = node->dirty_epoch.load(std::memory_order_seq_cst);
    DCHECK(epoch <= kMaxEpoch);
    dirty = std::max(dirty, epoch);
  }
  return dirty;
}

}  // namespace atolldb
