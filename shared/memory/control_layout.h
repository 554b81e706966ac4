// Layout of the `control` segment. Writer: the coordinator, unless a field says otherwise.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/memory/segment_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

enum class ClusterState : uint32_t {
  starting = 0,
  // The cluster turns the logs after the newest snapshot into a new snapshot. Until that is done,
  // transactions may only read the newest snapshot and pinned ones
  // (ControlSegment::readable_snapshot).
  recovering = 1,
  running = 2,
  draining = 3,
  // No transaction commits any more, and every wait ends with cluster_failed.
  stopped = 4,
};
inline constexpr uint32_t kClusterFailedFrom = static_cast<uint32_t>(ClusterState::stopped);

/// Value of the begin-epoch slot of a thread that holds no page reference.
inline constexpr uint64_t kIdleEpoch = ~uint64_t{0};

/// The clock keeps the ends of this many epochs, about ten seconds with default epochs.
inline constexpr uint64_t kEpochEnds = 1024;

/// The epochs. The words are spread over cache lines, because every worker polls `current`.
struct EpochBlock {
  alignas(64) std::atomic<uint64_t> current;
  /// No commit of this epoch or an earlier one is still in progress, on any node (R26).
  std::atomic<uint64_t> closed;
  /// Every commit of this epoch and earlier ones is durable. With durability off, equal to
  /// `closed`.
  alignas(64) std::atomic<uint64_t> durable;
  /// Changes after every increase of `durable`, and wakes all waiters. A waiter loads this word
  /// first. If it then finds `durable` too low, it sleeps on the loaded value (R24).
  alignas(64) std::atomic<uint32_t> durable_signal;
  /// Every commit of this epoch and earlier ones is durable, and no further commit can belong to
  /// them. Unlike `durable`, it advances while no transaction commits.
  alignas(64) std::atomic<uint64_t> settled;
  /// Epoch for which loggers write a marker. It has ended, and some node is dirty in it (R27).
  alignas(64) std::atomic<uint64_t> marker_wanted;
  /// Changes after each advance of `marker_wanted`. Loggers sleep on it.
  std::atomic<uint32_t> marker_signal;
  /// Changes after a logger has synced a marker. The coordinator sleeps on it. Writers: all
  /// loggers.
  alignas(64) std::atomic<uint32_t> logger_signal;
  /// No thread of the cluster can still read a page that was unlinked before this epoch began.
  alignas(64) std::atomic<uint64_t> oldest_begin;
  /// Latest epoch for whose durability a client waits; 0: none. Writers: nodes, once per epoch.
  alignas(64) std::atomic<uint64_t> awaited;
  /// Latest epoch that a node has asked the clock to end early (shared/memory/epoch_end.h); 0:
  /// none.
  alignas(64) std::atomic<uint64_t> end_requested;
  /// Changes after each advance of `end_requested`. The clock sleeps on it. Writers: nodes, and the
  /// clock's `stop`.
  std::atomic<uint32_t> end_signal;
  /// Number of epochs that the clock has ended early.
  alignas(64) std::atomic<uint64_t> early_ends;
  /// Ends of the latest epochs, in ns of the monotonic clock. The index is epoch % kEpochEnds. For
  /// statistics only. See epoch_end_ns.
  alignas(64) std::atomic<uint64_t> ended_ns[kEpochEnds];
};

/// Returns when the epoch ended, or, if the clock has overwritten that, the end of the oldest epoch
/// that it keeps. Returns 0 if the time is unknown. REQUIRES: the epoch has ended.
inline uint64_t epoch_end_ns(const EpochBlock& epochs, uint64_t epoch) {
  // Acquire pairs with the clock's store of `current`, which follows its store of the time.
  const uint64_t current = epochs.current.load(std::memory_order_acquire);
  DCHECK(epoch < current);
  // Excludes the oldest entry, because the next tick overwrites it.
  const uint64_t oldest = current - std::min(current, kEpochEnds - 1);
  return epochs.ended_ns[std::max(epoch, oldest) % kEpochEnds].load(std::memory_order_relaxed);
}

inline constexpr uint32_t kMaxStorages = 1024;
inline constexpr uint32_t kMaxStorageName = 63;

enum class StorageType : uint8_t { none = 0, array, mastertree, sequential, hash };
inline constexpr StorageType kLastStorageType = StorageType::hash;  // of StorageType
/// Returns whether the pages of this type are those of a Master-tree. A hash storage is a
/// Master-tree whose keys begin with their hash (engine/hash/README.md).
constexpr bool is_tree(StorageType type) {
  return type == StorageType::mastertree || type == StorageType::hash;
}
enum class StorageState : uint32_t { free = 0, creating, ready, dropping };

/// One storage. Its slot is id % kMaxStorages; ids are never reused. Writer: the coordinator.
/// `root` and `root_lock` have many writers (see engine/README.md).
struct alignas(64) StorageControl {
  std::atomic<uint32_t> state;  // StorageState; stored last, with release
  uint32_t id;
  StorageType type;
  uint8_t spare[3];
  uint32_t payload_bytes;  // array: fixed record size. Trees: typical size, a hint (0: unknown)
  uint64_t record_count;   // array: number of records
  char name[kMaxStorageName + 1];
  /// Operations on earlier storages of this slot (WorkerMetrics::storage_operations).
  std::atomic<uint64_t> operations_before;

  alignas(64) DualPointer root;
  McsWord root_lock;  // guards replacements of the page that `root` leads to
  uint32_t spare_beside_lock;
  /// Array and Master-tree: newest removed version (VID word) below the root pointer (R43).
  std::atomic<uint64_t> root_max_removed_vid;
  /// Number of dropped pages, modulo 2^32. Makes every null word differ from earlier ones (R1).
  /// Writers: installers.
  std::atomic<uint32_t> drop_count;
  /// Master-tree, not 0: writes to records that are in a snapshot only go to the delta tree, and do
  /// not copy their pages up (R76).
  std::atomic<uint32_t> uses_delta;
  /// Master-tree: root of the delta tree (R76), or null. Has no snapshot page. `root_lock` guards
  /// it, too.
  DualPointer delta_root;
  /// Array and Master-tree: number of snapshot pages that transactions have copied into memory. On
  /// a line of its own, because all readers of the storage load the lines above. Writers: workers,
  /// for several pages at once.
  alignas(64) std::atomic<uint64_t> copied_pages;
};

struct ControlSegment {
  SegmentHeader header;
  alignas(64) std::atomic<uint32_t> state;  // ClusterState; every wait checks it
  uint32_t node_count;
  uint32_t epoch_interval_us;
  std::atomic<uint32_t> catalog_version;  // incremented by every DDL
  uint64_t incarnation;
  uint64_t start_epoch;   // first epoch of the incarnation
  uint8_t data_uuid[16];  // identifies the durable data in every incarnation
  /// Not 0: snapshots free volatile pages, so a worker that finds no free page waits (R23).
  std::atomic<uint32_t> snapshots_free_pages;
  /// Number of snapshots triggered by low memory that freed almost no pages. Workers that wait for
  /// pages sleep on it.
  std::atomic<uint32_t> unproductive_snapshots;
  /// Newest snapshot that all nodes have published; 0: no snapshot yet. Transactions read it if
  /// they ask for a snapshot without naming one. The coordinator withdraws older snapshots only
  /// after it has stored this word (R61).
  std::atomic<uint32_t> readable_snapshot;
  /// While the cluster recovers: percentage of the logs that has been read. For display only.
  std::atomic<uint32_t> recovered_percent;
  /// Incremented when a transaction waits for the first snapshot (R62). Writers: workers.
  alignas(64) std::atomic<uint32_t> snapshot_requests;
  /// Value of `snapshot_requests` when the last finished attempt to take a snapshot began. Workers
  /// that wait for the first snapshot sleep on it.
  std::atomic<uint32_t> snapshot_answered;
  /// Not 0: the incarnation began with an empty database. Stored before the state becomes
  /// `running`.
  std::atomic<uint32_t> began_empty;
  alignas(64) std::atomic<uint64_t> heartbeat;
  EpochBlock epochs;
  alignas(64) StorageControl storages[kMaxStorages];

  StorageControl& storage(uint32_t id) { return storages[id % kMaxStorages]; }
};
// The words that workers poll stay aligned to cache lines.
static_assert(sizeof(StorageControl) % 64 == 0 && alignof(ControlSegment) == 64);
static_assert(offsetof(ControlSegment, epochs) % 64 == 0);
static_assert(offsetof(ControlSegment, storages) % 64 == 0);

/// Returns the latest epoch whose commits are all durable and that gets no further commits. It
/// advances while no transaction commits, unlike EpochBlock::durable, on which acknowledgements and
/// block headers rely.
inline uint64_t latest_settled_epoch(const EpochBlock& epochs) {
  // Relaxed: for display only. After a rise of `durable`, only the next tick raises `settled`.
  return std::max(epochs.settled.load(std::memory_order_relaxed),
                  epochs.durable.load(std::memory_order_relaxed));
}

/// Returns for how many epochs the oldest commits that are not durable have waited. Returns 0 if
/// every commit of an ended epoch is durable.
inline uint64_t durability_lag_epochs(const EpochBlock& epochs) {
  const uint64_t settled = latest_settled_epoch(epochs);
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  // Usual lag: the current epoch, and during a tick also the epoch before it, which is not settled.
  constexpr uint64_t kUsual = 2;
  return current > settled + kUsual ? current - settled - kUsual : 0;
}

/// Returns durability_lag_epochs in microseconds.
inline uint64_t durability_lag_us(const ControlSegment& control) {
  return durability_lag_epochs(control.epochs) * control.epoch_interval_us;
}

}  // namespace atolldb
