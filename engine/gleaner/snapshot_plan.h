// Messages between coordinator and nodes for a snapshot job: the plan, which the coordinator makes,
// the results of composers, and their encoding. Source: [FOEDUS15] sections 7.1, 7.2, 7.4.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/log/log_reader.h"
#include "engine/snapshot/live_pages.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/base/error.h"
#include "shared/base/pointer.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Identifies a reducer, which owns partitions.
struct ReducerPlace {
  uint16_t node = 0;
  uint16_t reducer = 0;  // within the node

  bool operator==(const ReducerPlace&) const = default;
};

/// A partition: keys (in gleaned form) from `low` on, up to the `low` of the next partition.
/// is_before defines the order.
struct PlannedPartition {
  // Array: 8 bytes. Master-tree: a slice of the first layer, 8 bytes big-endian, compared with keys
  // by is_before. First partition of a storage: empty.
  std::string low;
  ReducerPlace owner;

  bool operator==(const PlannedPartition&) const = default;
};

struct PlannedStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint32_t payload_bytes = 0;  // array: bytes per record
  uint64_t record_count = 0;   // array
  SnapshotPointer base_root;   // root in the base snapshot; null: none, or empty
  /// The victims of the plan may hold live pages of this storage (R68).
  bool has_victims = false;
  /// Master-tree: they may hold pages of layers below the first one.
  bool has_victims_below = false;
  /// Ascending, at least one. Sequential: empty, since each mapper sends its records to reducer 0
  /// of its own node.
  std::vector<PlannedPartition> partitions;

  bool operator==(const PlannedStorage&) const = default;
};

/// The stream of one logger, or a part of it. A mapper takes the records of the epochs after
/// stream.covered_epoch, up to `last_epoch` inclusive, which is the cut of the stream or earlier.
struct PlannedStream {
  LogStream stream;
  uint64_t last_epoch = 0;
};

/// The input of one mapper.
struct PlannedMapper {
  uint16_t node = 0;
  uint16_t mapper = 0;  // within the node
  std::vector<PlannedStream> streams;
};

struct SnapshotPlan {
  uint32_t snapshot = 0;
  uint32_t base = 0;        // 0: none
  uint64_t base_epoch = 0;  // the base contains all records of this epoch and earlier ones
  uint64_t epoch = 0;       // records of later epochs are ignored
  /// Victims: snapshots whose files the new snapshot will not need (R68). Composers copy all live
  /// pages of these files. Ascending.
  std::vector<uint32_t> victims;
  /// Data of the base that cannot be read is omitted, so it is lost. Otherwise these ranges stay
  /// unreadable, and their log records are held (R56). Requires that all snapshots with files of
  /// the base are victims.
  bool salvages = false;
  /// Neighbouring runs of sequential storages are merged by their sizes (R69). False in jobs that
  /// must write as little as possible, because only their snapshot makes room (R54).
  bool merges_runs = false;
  ClusterUuid cluster_uuid = {};
  // Ascending ids. Records of other storages are ignored, because those storages were dropped.
  std::vector<PlannedStorage> storages;
  std::vector<PlannedMapper> mappers;    // mappers of all nodes
  std::vector<ReducerPlace> reducers;    // reducers of all nodes, ascending
  std::vector<SnapshotFilePlace> files;  // files of the base, older ones included
};

/// A page whose parent is not written yet.
struct ComposedPage {
  // Array: number of the first record. Master-tree: low fence in the first layer. Sequential:
  // smallest epoch in the run of pages.
  uint64_t low = 0;
  SnapshotPointer page;
  uint32_t level = 0;    // level of the page; sequential: 0, or 1 for an older root
  uint32_t pages = 1;    // sequential: number of adjacent pages from `page` on
  uint64_t high = 0;     // sequential: largest epoch in the pages
  uint64_t records = 0;  // sequential: records in the pages

  bool operator==(const ComposedPage&) const = default;
};

/// Sequential storages, only as the first page of a partition: the oldest run of the base that the
/// partition's pages replace. They also replace all newer runs of the same node (R69).
inline ComposedPage replaced_from(SnapshotPointer run) {
  return {.page = run, .level = 1, .pages = 0};
}
inline bool is_replaced_from(const ComposedPage& page) {
  return page.level == 1 && page.pages == 0;
}

/// The pages of one partition of one storage. They ascend and tile the partition's range. Ranges of
/// an array that were never written have no page. No page crosses the bounds of the partition.
struct ComposedPartition {
  uint32_t storage_id = 0;
  uint32_t partition = 0;  // index; sequential: the node
  std::vector<ComposedPage> pages;
  uint64_t log_records = 0;  // log records that were applied
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;  // pages of the base that were read
  uint64_t stand_ins = 0;   // pointers to unreadable pages that were found and retained (R56)
  // By file, ascending by live_order. Replaced are pages of the base that the new snapshot does not
  // use (R67).
  std::vector<LivePages> written = {};
  std::vector<LivePages> replaced = {};

  bool operator==(const ComposedPartition&) const = default;
};

/// Encode for messages between coordinator and nodes, which run the same version of the program.
std::vector<std::byte> encode_plan(const SnapshotPlan& plan);
std::vector<std::byte> encode_composed(const std::vector<ComposedPartition>& partitions);

/// Returns whether all snapshots with files of the base are victims.
bool are_all_victims(const SnapshotPlan& plan);

/// Decode bytes from another process.
/// Error: code failed if the bytes differ from what encode_* writes.
Result<SnapshotPlan> decode_plan(std::span<const std::byte> bytes);
Result<std::vector<ComposedPartition>> decode_composed(std::span<const std::byte> bytes);

}  // namespace atolldb
