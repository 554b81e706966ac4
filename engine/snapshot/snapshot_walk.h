// Reads all of a storage in a snapshot, and checks all that its pages promise: for tools that
// verify snapshots, and as the oracle of tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/stand_in.h"
#include "engine/transaction/vid.h"
#include "shared/error.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

struct SnapshotWalkStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // array
  uint64_t record_count = 0;   // array
  SnapshotPointer root;        // null: empty
};

struct WalkedRecord {
  std::string_view key;  // in gleaned form (log_source.h); sequential: empty
  std::span<const std::byte> payload;
  Vid vid;
};

/// An error that it answers ends the walk.
using RecordVisitor = std::function<Result<void>(const WalkedRecord&)>;

/// Told of each range that cannot be read (R56), without which a walk ends there.
using UnreadableVisitor = std::function<void(const UnreadablePage&)>;

struct SnapshotWalkTotals {
  uint64_t records = 0;
  uint64_t pages = 0;       // all that were read
  uint64_t leaf_pages = 0;  // of them those with records
  uint64_t layers = 0;      // Master-tree, the first one included
};

/// Visits each record, in the order of keys (arrays: those that were ever written; sequential: in
/// the order of their runs). `epoch`: of the snapshot. Reads page by page; memory: one page per
/// level. With `on_unreadable` it goes on after what cannot be read. Errors: code corruption,
/// naming file or storage, page and what is wrong; the visitor's.
Result<SnapshotWalkTotals> walk_snapshot(const SnapshotFiles& files,
                                         const SnapshotWalkStorage& storage, uint64_t epoch,
                                         const RecordVisitor& visit,
                                         const UnreadableVisitor& on_unreadable = {});

}  // namespace atolldb
