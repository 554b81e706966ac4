// One storage with a sequence of snapshots. Each round composes all partitions, as the reducers of
// two nodes do, and combines them, as the coordinator does.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/compose/combine_roots.h"
#include "engine/compose/compose.h"
#include "ops/verify/snapshot_walk.h"
#include "tests/engine/compose/gleaned_log.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {

struct ModelRecord {
  std::string payload;
  Vid vid;
  bool operator==(const ModelRecord&) const = default;
};
using Model = std::map<std::string, ModelRecord>;

class SnapshotStage {
 public:
  static constexpr uint32_t kStorage = 7;
  static constexpr uint32_t kNodes = 2;

  explicit SnapshotStage(StorageType type, uint64_t record_count = 0, uint32_t payload_bytes = 0)
      : SnapshotStage(std::make_unique<PowerCutFileSystem>(), "/data", type, record_count,
                      payload_bytes) {}
  SnapshotStage(std::unique_ptr<FileSystem> file_system, std::string directory, StorageType type,
                uint64_t record_count, uint32_t payload_bytes)
      : files(std::move(file_system)), reader(*files, kUuid), directory_(std::move(directory)) {
    storage.id = kStorage;
    storage.type = type;
    storage.record_count = record_count;
    storage.payload_bytes = payload_bytes;
  }

  PowerCutFileSystem& power_cut() { return dynamic_cast<PowerCutFileSystem&>(*files); }
  std::string path(uint32_t node, uint32_t of) const {
    return snapshot_file_path(directory_, node, of);
  }

  /// Makes one snapshot on top of the previous one. `lows`: first keys of the partitions; the first
  /// one is empty. REQUIRES: `logs` is sorted. `fence_maps`: fence maps of the volatile pages
  /// beside which the snapshot is to be installed. With `fence_maps`, files that the snapshot does
  /// not need stay open.
  Result<CombinedRoot> round(const std::vector<GleanedLog>& logs,
                             const std::vector<std::string>& lows, uint64_t epoch_now,
                             FenceMapSource* fence_maps = nullptr) {
    SnapshotPlan plan = make_plan(lows, epoch_now);
    std::vector<SnapshotWriter> writers;
    for (uint32_t node = 0; node <= kNodes; ++node) {
      auto writer = SnapshotWriter::create(
          *files,
          {directory_, node == kNodes ? kCoordinator : node, plan.snapshot, epoch_now, kUuid});
      if (!writer) return std::unexpected(writer.error());
      writers.push_back(std::move(*writer));
    }
    composed.clear();
    size_t at = 0;
    // Every node composes its runs of a sequential storage, even without log records.
    const bool is_sequential = storage.type == StorageType::sequential;
    const size_t partitions = is_sequential ? composing_nodes : lows.size();
    EXPECT_LE(lows.size(), partitions);
    for (uint32_t i = 0; i < partitions; ++i) {
      std::vector<GleanedLog> part;
      const bool is_last = i + 1 >= lows.size();
      while (at < logs.size() && (is_last || is_before(logs[at].key, lows[i + 1]))) {
        part.push_back(logs[at++]);
      }
      VectorLogSource source(storage.id, part);
      std::mutex mutex;
      auto partition =
          compose({plan,
                   0,
                   i,
                   source,
                   reader,
                   writers[i % kNodes],
                   mutex,
                   {},
                   fence_maps,
                   [this](const UnreadablePage& page) { unreadable.push_back(page); }});
      if (!partition) return std::unexpected(partition.error());
      composed.push_back(std::move(*partition));
    }
    if (before_combine) before_combine();
    auto combined = combine_roots(plan, 0, composed, reader, writers[kNodes]);
    if (!combined) return combined;
    if (auto kept = keep(plan, writers); !kept) return std::unexpected(kept.error());
    storage.base_root = combined->root;
    if (fence_maps != nullptr) return combined;
    if (auto closed = close_unneeded(); !closed) return std::unexpected(closed.error());
    return combined;
  }
  /// Closes the files in which the last snapshot has no page. REQUIRES: no reader uses them.
  Result<void> close_unneeded() { return reader.open_only(places_); }

  /// Reads all records of the snapshot. For sequential storages, use `walk`.
  Result<SnapshotWalkTotals> read_all(Model& records) {
    return walk([&](const WalkedRecord& record) {
      const auto* payload = reinterpret_cast<const char*>(record.payload.data());
      const bool is_after = records.empty() || records.rbegin()->first < record.key;
      EXPECT_TRUE(is_after) << "keys do not ascend";
      records[std::string(record.key)] = {std::string(payload, record.payload.size()), record.vid};
      return Result<void>();
    });
  }
  Result<SnapshotWalkTotals> walk(const RecordVisitor& visit) {
    return walk_snapshot(
        reader,
        {storage.id, storage.type, storage.payload_bytes, storage.record_count, storage.base_root},
        epoch, visit);
  }

  std::unique_ptr<FileSystem> files;
  SnapshotFiles reader;
  PlannedStorage storage;
  std::vector<ComposedPartition> composed;  // of the last round
  uint32_t snapshot = 0;
  uint64_t epoch = 0;
  /// The next rounds rewrite all pages, and then delete all older files.
  bool rewrites = false;
  /// A rewrite keeps the older files, as the coordinator does if some pages cannot be read (R56).
  bool keeps_files = false;
  /// The next rounds drop the ranges that cannot be read.
  bool salvages = false;
  /// The next rounds merge neighbouring runs of a sequential storage (R69).
  bool merges_runs = true;
  /// Only nodes 0 to this one, exclusive, compose a sequential storage. The cluster lacks the
  /// others.
  uint32_t composing_nodes = kNodes;
  std::vector<UnreadablePage> unreadable;  // all unreadable pages reported, over all rounds
  std::function<void()> before_combine;    // may be empty

 private:
  static constexpr ClusterUuid kUuid = {1, 2, 3};

  /// Partitions of Master-trees begin at slices: a key shorter than a slice counts as padded with
  /// zeros.
  bool is_before(std::string key, const std::string& low) const {
    if (storage.type == StorageType::mastertree) key.resize(8, '\0');
    return key < low;
  }

  SnapshotPlan make_plan(const std::vector<std::string>& lows, uint64_t epoch_now) {
    SnapshotPlan plan;
    plan.base = snapshot;
    plan.base_epoch = epoch;
    plan.snapshot = ++snapshot;
    plan.epoch = epoch = epoch_now;
    plan.cluster_uuid = kUuid;
    plan.rewrites = rewrites;
    plan.salvages = salvages;
    plan.merges_runs = merges_runs;
    for (uint16_t node = 0; node < composing_nodes; ++node) plan.reducers.push_back({node, 0});
    storage.partitions.clear();
    if (storage.type != StorageType::sequential) {
      for (const std::string& low : lows) storage.partitions.push_back({low, {}});
    }
    plan.storages = {storage};
    return plan;
  }

  Result<void> keep(const SnapshotPlan& plan, std::vector<SnapshotWriter>& writers) {
    std::vector<SnapshotFilePlace> places;
    if (plan.rewrites && !keeps_files) places_.clear();
    for (uint32_t node = 0; node <= kNodes; ++node) {
      if (auto finished = writers[node].finish(); !finished) return finished;
      if (writers[node].page_count() == 1) continue;
      places.push_back({plan.snapshot, node == kNodes ? kCoordinator : node, directory_,
                        writers[node].page_count()});
    }
    places_.insert(places_.end(), places.begin(), places.end());
    return reader.open(places);
  }

  std::string directory_;
  std::vector<SnapshotFilePlace> places_;  // files with pages of the last snapshot
};

}  // namespace atolldb::test
