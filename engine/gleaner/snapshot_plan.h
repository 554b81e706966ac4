// Messages between coordinator and nodes for a snapshot job, and their encoding: the plan, which
// the coordinator makes, captured ranges, and the results of composers. Also the work of a job as
// one number, for both. Source: [FOEDUS15] sections 7.1, 7.2, 7.4.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/format/byte_stream.h"
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
  uint64_t record_count = 0;   // array: number of records
  SnapshotPointer base_root;   // root in the base; null: no base, or the storage is empty there
  /// The victims of the plan may hold live pages of this storage (R68).
  bool has_victims = false;
  /// Master-tree: the victims may hold pages of layers below the first one.
  bool has_victims_below = false;
  /// Master-tree: the base may hold pages of layers below the first one.
  bool has_next_layers = true;
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

template <typename Archive>
void fields(Archive& archive, Described<Archive, PlannedStream>& planned) {
  auto& stream = planned.stream;
  archive(stream.directory, stream.node, stream.logger, stream.incarnation, stream.start_epoch,
          stream.cluster_uuid, stream.covered_epoch, planned.last_epoch);
}

/// The input of one mapper.
struct PlannedMapper {
  uint16_t node = 0;
  uint16_t mapper = 0;  // within the node
  std::vector<PlannedStream> streams;
};

struct SnapshotPlan {
  uint32_t snapshot = 0;
  uint32_t base = 0;        // id of the base; 0: none
  uint64_t base_epoch = 0;  // the base contains all records of this epoch and earlier ones
  uint64_t epoch = 0;       // records of later epochs are ignored
  /// Victims: snapshots whose files the new snapshot will not need (R68). Composers copy all live
  /// pages of these files. Ascending.
  std::vector<uint32_t> victims;
  /// True in a salvage: data of the base that cannot be read is omitted, so it is lost. All
  /// snapshots with files of the base must then be victims. False: unreadable ranges stay
  /// unreadable, and their log records are held (R56).
  bool salvages = false;
  /// True: neighbouring runs of sequential storages are merged by their sizes (R69). False in jobs
  /// that must write as little as possible, because only their snapshot makes room (R54).
  bool merges_runs = false;
  ClusterUuid cluster_uuid = {};
  // Ascending ids. Records of other storages are ignored, because those storages were dropped.
  std::vector<PlannedStorage> storages;
  std::vector<PlannedMapper> mappers;    // mappers of all nodes
  std::vector<ReducerPlace> reducers;    // reducers of all nodes, ascending
  std::vector<SnapshotFilePlace> files;  // files of the base, also those of older snapshots
};

/// A range of keys of a Master-tree whose content is captured (engine/compose/capture.h). Mappers
/// omit its log records. A key belongs to the range that has its slice of the first layer.
struct CapturedRange {
  uint32_t storage_id = 0;
  uint64_t low = 0;
  uint64_t high = 0;  // first slice after the range; meaningless if high_is_end
  bool high_is_end = false;

  bool contains(uint64_t slice) const { return slice >= low && (high_is_end || slice < high); }
  bool operator==(const CapturedRange&) const = default;
};

/// Bytes of an encoded range.
inline constexpr size_t kCapturedRangeBytes = 21;

/// A node captures at most this many ranges of one partition. Mappers search them for each record.
inline constexpr size_t kMaxCapturedRanges = size_t{1} << 16;

/// A page whose parent is not written yet.
struct ComposedPage {
  // Array: number of the first record. Master-tree: low fence in the first layer. Sequential:
  // smallest epoch in the run of pages.
  uint64_t low = 0;
  SnapshotPointer page;
  uint32_t level = 0;    // level of the page; sequential: 0, or 1 in replaced_from
  uint32_t pages = 1;    // sequential: number of adjacent pages from `page` on
  uint64_t high = 0;     // sequential: largest epoch in the pages
  uint64_t records = 0;  // sequential: records in the pages

  bool operator==(const ComposedPage&) const = default;
};

/// Returns an entry that is no page: it names the oldest run of the base that the pages of a
/// partition replace. All newer runs of the node are replaced, too (R69). Such an entry occurs only
/// in sequential storages, as the first page of a partition.
inline ComposedPage replaced_from(SnapshotPointer run) {
  return {.page = run, .level = 1, .pages = 0};
}
inline bool is_replaced_from(const ComposedPage& page) {
  return page.level == 1 && page.pages == 0;
}

/// Changes of the number of records of a Master-tree, as composers know them.
struct RecordChange {
  uint64_t written = 0;       // records in the pages that were written
  uint64_t replaced = 0;      // records in the pages of the base that these replace and were read
  uint64_t unread_pages = 0;  // pages of the base that captured pages replace, and were not read
  // A sample of the pages of the base that captured pages replace. `replaced` includes its records.
  uint64_t sampled_pages = 0;
  uint64_t sampled_records = 0;

  RecordChange& operator+=(const RecordChange& other) {
    written += other.written;
    replaced += other.replaced;
    unread_pages += other.unread_pages;
    sampled_pages += other.sampled_pages;
    sampled_records += other.sampled_records;
    return *this;
  }
  bool operator==(const RecordChange&) const = default;
};

/// The pages of one partition of one storage. They ascend and tile the partition's range. Ranges of
/// an array that were never written have no page. No page crosses the bounds of the partition.
struct ComposedPartition {
  uint32_t storage_id = 0;
  uint32_t partition = 0;  // index; sequential: the node
  std::vector<ComposedPage> pages;
  uint64_t log_records = 0;  // log records that were applied
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;    // pages of the base that were read, without those of pages_cached
  uint64_t pages_cached = 0;  // pages of the base that came from the node's cache
  uint64_t stand_ins = 0;     // unreadable pages to which the new snapshot still refers (R56)
  // Numbers of pages by file, ascending by live_order (R67). `replaced` counts pages of the base
  // that the new snapshot does not use.
  std::vector<LivePages> written = {};
  std::vector<LivePages> replaced = {};
  RecordChange records = {};  // Master-tree

  bool operator==(const ComposedPartition&) const = default;
};

/// Encode for messages between coordinator and nodes, which run the same program version.
std::vector<std::byte> encode_plan(const SnapshotPlan& plan);
std::vector<std::byte> encode_composed(const std::vector<ComposedPartition>& partitions);
std::vector<std::byte> encode_captured(const std::vector<CapturedRange>& ranges);

/// Returns whether all snapshots with files of the base are victims.
bool are_all_victims(const SnapshotPlan& plan);

/// Decode bytes from another process.
/// Error: code failed if the bytes differ from what the encode function writes.
Result<SnapshotPlan> decode_plan(std::span<const std::byte> bytes);
Result<std::vector<ComposedPartition>> decode_composed(std::span<const std::byte> bytes);
Result<std::vector<CapturedRange>> decode_captured(std::span<const std::byte> bytes);

/// Returns whether the ranges ascend by storage and slice, and do not overlap.
bool do_ascend(std::span<const CapturedRange> ranges);

/// The part of a job's work that is done when its mappers have ended. It is a half, because mapping
/// and reducing a record takes about as long as composing it.
inline constexpr double kMapPart = 0.5;

/// Returns the done part of `all`, in [0, 1], or 0 if there is nothing to do.
inline double done_part(uint64_t done, double all) {
  return all > 0 ? std::min(1.0, static_cast<double>(done) / all) : 0;
}
/// Returns which part of a job's work is done while its mappers run. Unit: bytes of log.
inline double work_of_mappers(uint64_t read, double log_bytes) {
  return kMapPart * done_part(read, log_bytes);
}
/// Returns the same while its composers run, which is after the mappers. Unit: records.
inline double work_of_composers(uint64_t applied, double records) {
  return kMapPart + (1 - kMapPart) * done_part(applied, records);
}

}  // namespace atolldb
