// Reads all of a storage in a snapshot and checks all invariants of its pages. Tools verify
// snapshots with it; tests use it as an oracle.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/format/stand_in.h"
#include "engine/format/vid.h"
#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct SnapshotWalkStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // only used for arrays
  uint64_t record_count = 0;   // only used for arrays
  SnapshotPointer root;        // null: the storage is empty
};

/// The part of a storage that a walk visits. For an array, the numbers are indexes. For a
/// Master-tree, they are the first 8 bytes of the keys, in big-endian order. For a sequential
/// storage, they are ordinals of its pages.
struct WalkRange {
  uint64_t low = 0;
  uint64_t last = UINT64_MAX;  // inclusive

  bool is_whole() const { return low == 0 && last == UINT64_MAX; }
  bool overlaps(uint64_t from, uint64_t to) const { return from <= last && to >= low; }
  bool contains(uint64_t number) const { return overlaps(number, number); }
  bool operator==(const WalkRange&) const = default;
};

struct WalkedRecord {
  /// In gleaned form (gleaned_record.h). Hash storage: without the hash. Sequential: empty.
  std::string_view key;
  std::span<const std::byte> payload;
  Vid vid;
};

/// Visits one record. An error that it returns ends the walk.
using RecordVisitor = std::function<Result<void>(const WalkedRecord&)>;

/// Receives each range that cannot be read (R56). Without this visitor, the walk ends with an error
/// there.
using UnreadableVisitor = std::function<void(const UnreadablePage&)>;

struct SnapshotWalkTotals {
  uint64_t records = 0;
  uint64_t pages = 0;           // number of pages read
  uint64_t leaf_pages = 0;      // the part of `pages` that holds records
  uint64_t layers = 0;          // Master-tree: layers, the first one included
  std::vector<LivePages> live;  // pages read in each file, each page once; in live_order
};

/// Visits each record in key order. Array: only records that were ever written. Sequential storage:
/// in the order of its runs. Hash storage: in the order of the hashes, which are checked (R87).
/// `epoch`: epoch of the snapshot. With `on_unreadable` the walk continues after a range that
/// cannot be read. Reads page by page. Memory: one page per level. Errors: code corruption, which
/// names file or storage, page and defect; errors of the visitor.
Result<SnapshotWalkTotals> walk_snapshot(const SnapshotFiles& files,
                                         const SnapshotWalkStorage& storage, uint64_t epoch,
                                         const RecordVisitor& visit,
                                         const UnreadableVisitor& on_unreadable = {},
                                         const WalkRange& range = {});

}  // namespace atolldb
