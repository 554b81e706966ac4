// Makes a snapshot of an empty tree with a few pages, complete in its files, metadata and
// savepoint.
#pragma once

#include <string>
#include <vector>

#include "engine/format/tree_page.h"
#include "engine/log/savepoint_snapshots.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "engine/snapshot/snapshot_writer.h"

namespace atolldb::test {

inline constexpr uint64_t kMadePages = 3;  // without page 0

/// Makes an empty border page for all keys, which may be the root of a Master-tree.
inline void make_empty_border(PageHeader& header) {
  header.type = PageType::mastertree_border;
  header.version_word.store(PageVersion::make(0, 0, PageVersion::kAscending).word(),
                            std::memory_order_relaxed);
  auto& page = reinterpret_cast<BorderPage&>(header);
  page.high = 0;
  page.heap_begin = static_cast<uint16_t>(kPageBytes);
}

/// Writes the snapshot file at `place`. Returns the error, or an empty text.
inline std::string make_snapshot_file(FileSystem& files, const ClusterUuid& uuid,
                                      const SnapshotFilePlace& place, uint64_t epoch) {
  auto writer =
      SnapshotWriter::create(files, {place.directory, place.node, place.snapshot, epoch, uuid});
  if (!writer) return writer.error().message;
  for (uint64_t page = 0; page < kMadePages; ++page) {
    auto next = writer->next(1);
    if (!next) return next.error().message;
    make_empty_border(**next);
  }
  auto finished = writer->finish();
  return finished ? "" : finished.error().message;
}

/// Makes files of node 0 and of the coordinator, and the metadata. `older` lists files of earlier
/// snapshots that the metadata refers to. Returns the error, or an empty text.
inline std::string make_snapshot_files(FileSystem& files, const std::string& data_dir,
                                       const ClusterUuid& uuid, uint32_t id, uint64_t epoch,
                                       std::vector<SnapshotFilePlace> older = {}) {
  SnapshotMetadata metadata;
  metadata.id = id;
  metadata.epoch = epoch;
  metadata.cluster_uuid = uuid;
  metadata.files = std::move(older);
  for (const uint32_t node : {uint32_t{0}, kCoordinator}) {
    const SnapshotFilePlace place = {id, node, data_dir, kMadePages + 1};
    const std::string problem = make_snapshot_file(files, uuid, place, epoch);
    if (!problem.empty()) return problem;
    metadata.files.push_back(place);
  }
  metadata.storages.push_back(
      {1, StorageType::mastertree, "accounts", SnapshotPointer::make(id, 0, 1), 0});
  metadata.live = {{1, id, 0, 1, 0}};
  auto written = write_snapshot_metadata(files, data_dir, metadata);
  return written ? "" : written.error().message;
}

/// Performs all steps of a snapshot, up to its entry in the savepoint. Returns the error, or an
/// empty text.
inline std::string make_snapshot(FileSystem& files, const std::string& data_dir,
                                 Savepoint& savepoint, uint64_t epoch,
                                 std::vector<SnapshotFilePlace> older = {}, uint32_t keep = 1) {
  auto id = take_snapshot_id(files, data_dir, savepoint);
  if (!id) return id.error().message;
  const std::string problem =
      make_snapshot_files(files, data_dir, savepoint.cluster_uuid, *id, epoch, std::move(older));
  if (!problem.empty()) return problem;
  auto stored = store_snapshot(files, data_dir, savepoint, *id, epoch, keep);
  return stored ? "" : stored.error().message;
}

}  // namespace atolldb::test
