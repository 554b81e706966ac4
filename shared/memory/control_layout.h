// Layout of the `control` segment. Writer: the coordinator, unless said otherwise at the field.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/limits.h"
#include "shared/memory/pointer.h"
#include "shared/memory/segment_header.h"
#include "shared/sync/mcs_word.h"

namespace atolldb {

enum class ClusterState : uint32_t {
  starting = 0,
  // The logs behind the newest snapshot become another one. Until that is done transactions may
  // read the newest and the pinned ones, no more (ControlSegment::readable_snapshot).
  recovering = 1,
  running = 2,
  draining = 3,
  // Nothing commits any more, and every wait ends with cluster_failed.
  stopped = 4,
};
inline constexpr uint32_t kClusterFailedFrom = static_cast<uint32_t>(ClusterState::stopped);

/// A begin-epoch slot of a thread that holds no page reference.
inline constexpr uint64_t kIdleEpoch = ~uint64_t{0};

/// One cache line per word: every worker polls `current`, the others change as often.
struct EpochBlock {
  alignas(64) std::atomic<uint64_t> current;
  /// No commit of this epoch or before is still on its way, on any node (R26).
  std::atomic<uint64_t> closed;
  /// Every commit of this epoch and before is durable. With durability off: the same as `closed`.
  alignas(64) std::atomic<uint64_t> durable;
  /// Changes after every rise of `durable`, which wakes all that wait on it: who has loaded this
  /// word first and then finds `durable` too low sleeps on what was loaded (R24).
  alignas(64) std::atomic<uint32_t> durable_signal;
  /// Every commit that there is of this epoch and before is durable, and there will be no other:
  /// like `durable`, but it goes on while nothing commits.
  alignas(64) std::atomic<uint64_t> settled;
  /// Loggers write a marker for this epoch, which is over: some node is dirty in it (R27).
  alignas(64) std::atomic<uint64_t> marker_wanted;
  /// Changes after each advance of `marker_wanted`; for wait_on.
  std::atomic<uint32_t> marker_signal;
  /// Changes when a logger has synced a marker; for wait_on. Writers: all loggers.
  alignas(64) std::atomic<uint32_t> logger_signal;
  /// No thread of the cluster may still look at a page that was unlinked before this epoch began.
  alignas(64) std::atomic<uint64_t> oldest_begin;
};

inline constexpr uint32_t kMaxStorages = 1024;
inline constexpr uint32_t kMaxStorageName = 63;

enum class StorageType : uint8_t { none = 0, array, mastertree, sequential };
enum class StorageState : uint32_t { free = 0, creating, ready, dropping };

/// One storage. Slot = id % kMaxStorages; ids are never reused. Writers: the coordinator; but
/// `root` and `root_lock` have many (see engine/README.md).
struct alignas(64) StorageControl {
  std::atomic<uint32_t> state;  // StorageState; release after all other fields
  uint32_t id;
  StorageType type;
  uint8_t spare[3];
  uint32_t payload_bytes;  // array: fixed record size. mastertree: typical size, a hint (0: none)
  uint64_t record_count;   // array: number of records
  char name[kMaxStorageName + 1];

  alignas(64) DualPointer root;
  McsWord root_lock;  // guards changes of `root` from one page to another
  /// Array and Master-tree: VID word floor of the root slot (R43).
  std::atomic<uint64_t> root_floor;
  /// Pages that were dropped, modulo 2^32: makes every null word differ from those before it (R1).
  /// Writers: installers.
  std::atomic<uint32_t> drop_count;
};

struct ControlSegment {
  SegmentHeader header;
  alignas(64) std::atomic<uint32_t> state;  // ClusterState; waits look at it
  uint32_t node_count;
  uint32_t epoch_interval_us;
  std::atomic<uint32_t> catalog_version;  // bumped on every DDL
  uint64_t incarnation;
  uint64_t start_epoch;   // of the incarnation
  uint8_t data_uuid[16];  // of what is durable: the same in every incarnation
  /// Not 0: snapshots let volatile pages go, so that a thread that finds none waits for it (R23).
  std::atomic<uint32_t> pages_come_back;
  /// Snapshots that were taken for want of pages and let next to none go; for wait_on.
  std::atomic<uint32_t> vain_snapshots;
  /// The newest snapshot that all nodes have published, which transactions read that ask for a
  /// snapshot and name none; 0: none yet. Older ones are withdrawn after it was stored (R61).
  std::atomic<uint32_t> readable_snapshot;
  /// While it recovers: percent of the logs that are read. For people.
  std::atomic<uint32_t> recovered_percent;
  /// Rises when a transaction waits for the first snapshot (R62). Writers: workers.
  alignas(64) std::atomic<uint32_t> snapshot_requests;
  /// What `snapshot_requests` was when the last attempt began that has ended; for wait_on.
  std::atomic<uint32_t> snapshot_answered;
  /// Not 0: the incarnation began without any commit; before the state `running`.
  std::atomic<uint32_t> began_empty;
  alignas(64) std::atomic<uint64_t> heartbeat;
  EpochBlock epochs;
  alignas(64) StorageControl storages[kMaxStorages];

  StorageControl& storage(uint32_t id) { return storages[id % kMaxStorages]; }
};

}  // namespace atolldb
