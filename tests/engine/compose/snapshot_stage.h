// One storage with a sequence of snapshots. Each round composes all partitions, as the reducers of
// two nodes do, and combines them, as the coordinator does.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/base_files.h"
#include "engine/compose/capture.h"
#include "engine/compose/combine_roots.h"
#include "engine/compose/compose.h"
#include "engine/compose/record_counts.h"
#include "ops/verify/live_page_check.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/try.h"
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

  /// Makes one snapshot on top of the previous one.
  /// `logs`: log records of all partitions. REQUIRES: they are sorted.
  /// `lows`: first keys of the partitions, ascending. The first one is empty.
  /// `fence_maps`: source of captured pages, and of the fence maps of the volatile pages beside
  /// which the snapshot is to be installed. Null: there are no volatile pages.
  ///
  /// Captured pages replace the log records of their ranges. If they do not fit the base, makes the
  /// snapshot again without them, as the coordinator's next attempt does.
  ///
  /// Files that the snapshot does not need stay open. They are closed only if `rewrites` is true
  /// and `fence_maps` is null.
  Result<CombinedRoot> round(const std::vector<GleanedLog>& logs,
                             const std::vector<std::string>& lows, uint64_t epoch_now,
                             FenceMapSource* fence_maps = nullptr) {
    const uint64_t epoch_before = epoch;
    const std::vector<uint32_t> victims_before = victims;
    auto made = round_once(logs, lows, epoch_now, fence_maps, true);
    if (made || !made.error().message.contains("captured pages do not fit")) return made;
    ++misfits;
    epoch = epoch_before;
    victims = victims_before;
    return round_once(logs, lows, epoch_now, fence_maps, false);
  }
  /// Closes the files in which the last snapshot has no page. REQUIRES: no reader uses them.
  Result<void> close_unneeded() { return reader.open_only(metadata.files); }
  /// Chooses the victims of the next round: all older snapshots, some of them, or none.
  void choose_victims(uint64_t random) {
    rewrites = random % 6 == 0;
    victims.clear();
    if (random % 3 == 0) return;
    for (const uint32_t id : snapshots_of(metadata.files)) {
      random = random * 6364136223846793005u + 1442695040888963407u;
      if ((random >> 60) % 3 == 0) victims.push_back(id);
    }
  }
  /// Compares the counts of live pages (R67), and of records, with a walk.
  Result<void> check_counts() {
    ATOLL_ASSIGN(const auto totals, walk([](const WalkedRecord&) { return Result<void>(); }));
    for (const RecordCount& count : metadata.record_counts) {
      if (count.is_estimate) continue;
      EXPECT_EQ(count.records, totals.records);
      ++exact_counts;
    }
    return check_live_pages(metadata, metadata.storages.at(0), totals.live);
  }

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
  bool reads_ahead = true;     // true: every second round reads ahead
  PageAhead* ahead = nullptr;  // null: rounds that read ahead use an own one
  PlannedStorage storage;
  std::vector<ComposedPartition> composed;  // results of the last round
  uint32_t snapshot = 0;
  uint64_t epoch = 0;
  SnapshotMetadata metadata;  // metadata of the last snapshot
  /// True: all older snapshots are victims of the next rounds.
  bool rewrites = false;
  /// Victims of the next round, in ascending order. Not used if `rewrites` is true.
  std::vector<uint32_t> victims;
  /// True: the next rounds drop the ranges that cannot be read.
  bool salvages = false;
  /// True: the next rounds merge neighbouring runs of a sequential storage (R69).
  bool merges_runs = true;
  /// Only nodes with a number below this one compose a sequential storage. The others have left the
  /// cluster.
  uint32_t composing_nodes = kNodes;
  std::vector<UnreadablePage> unreadable;  // all unreadable pages reported, over all rounds
  std::function<void()> before_combine;    // called in each round; may be empty
  std::function<void(uint32_t partition)> before_compose;  // may be empty
  uint64_t captured_pages = 0;                             // over all rounds
  uint64_t exact_counts = 0;  // numbers of records that `check_counts` has compared
  uint64_t misfits = 0;       // rounds that were repeated without captured pages

 private:
  static constexpr ClusterUuid kUuid = {1, 2, 3};

  Result<CombinedRoot> round_once(const std::vector<GleanedLog>& logs,
                                  const std::vector<std::string>& lows, uint64_t epoch_now,
                                  FenceMapSource* fence_maps, bool captures) {
    SnapshotPlan plan = make_plan(lows, epoch_now);
    std::vector<SnapshotWriter> writers;
    for (uint32_t node = 0; node <= kNodes; ++node) {
      auto writer = SnapshotWriter::create(
          *files,
          {directory_, node == kNodes ? kCoordinator : node, plan.snapshot, epoch_now, kUuid});
      if (!writer) return std::unexpected(writer.error());
      writers.push_back(std::move(*writer));
    }
    std::vector<std::vector<CapturedPage>> captured(lows.size());
    if (captures && fence_maps != nullptr && is_tree(storage.type)) {
      ATOLL_TRY(capture(plan, writers, *fence_maps, captured));
    }
    composed.clear();
    PageAhead& used_ahead = ahead == nullptr ? ahead_ : *ahead;
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
      if (i < lows.size()) leave_out(captured[i], part);
      if (before_compose) before_compose(i);
      VectorLogSource source(storage.id, part);
      std::mutex mutex;
      auto partition = compose({plan,
                                0,
                                i,
                                source,
                                reader,
                                writers[i % kNodes],
                                mutex,
                                {},
                                fence_maps,
                                [this](const UnreadablePage& page) { unreadable.push_back(page); },
                                i < lows.size() ? captured[i] : std::span<const CapturedPage>(),
                                reads_ahead && plan.snapshot % 2 == 0 ? &used_ahead : nullptr});
      used_ahead.clear();
      if (!partition) return std::unexpected(partition.error());
      composed.push_back(std::move(*partition));
    }
    if (before_combine) before_combine();
    auto combined = combine_roots(plan, 0, composed, reader, writers[kNodes]);
    if (!combined) return combined;
    if (auto kept = keep(plan, writers, *combined); !kept) return std::unexpected(kept.error());
    storage.base_root = combined->root;
    // Older files are closed only after a rewrite of all pages, and only if no volatile page can
    // refer to them.
    if (fence_maps != nullptr || !rewrites) return combined;
    if (auto closed = close_unneeded(); !closed) return std::unexpected(closed.error());
    return combined;
  }

  /// Captures pages of all partitions, as SnapshotJobWork::capture does.
  Result<void> capture(const SnapshotPlan& plan, std::vector<SnapshotWriter>& writers,
                       FenceMapSource& source, std::vector<std::vector<CapturedPage>>& captured) {
    const std::function<bool()> never;
    for (uint32_t i = 0; i < captured.size(); ++i) {
      PageOutput pages(reader, writers[i % kNodes], nullptr, storage.id, never);
      const CaptureTask task{.range = range_of_partition(plan.storages[0], i),
                             .base_epoch = plan.base_epoch,
                             .epoch = plan.epoch,
                             .write = [&](PageBuffer& image) { return pages.write(image); }};
      ATOLL_TRY(source.capture_pages_of(storage.id, task, captured[i]));
      captured_pages += captured[i].size();
    }
    return {};
  }

  /// Removes the log records of captured ranges, as mappers do.
  void leave_out(const std::vector<CapturedPage>& captured, std::vector<GleanedLog>& logs) const {
    std::vector<CapturedRange> ranges;
    add_captured_ranges(storage.id, captured, ranges);
    EXPECT_TRUE(do_ascend(ranges));
    std::erase_if(logs, [&](const GleanedLog& log) {
      const uint64_t slice = slice_of(std::as_bytes(std::span(log.key)));
      return std::ranges::any_of(ranges, [&](const auto& range) { return range.contains(slice); });
    });
  }

  /// Partitions of Master-trees begin at slices: a key shorter than a slice counts as padded with
  /// zeros.
  bool is_before(std::string key, const std::string& low) const {
    if (storage.type == StorageType::mastertree) key.resize(8, '\0');
    return key < low;
  }

  SnapshotPlan make_plan(const std::vector<std::string>& lows, uint64_t epoch_now) {
    SnapshotPlan plan;
    plan.base = metadata.id;
    plan.base_epoch = epoch;
    plan.files = metadata.files;
    plan.victims = rewrites ? snapshots_of(metadata.files) : std::exchange(victims, {});
    plan.snapshot = ++snapshot;
    plan.epoch = epoch = epoch_now;
    plan.cluster_uuid = kUuid;
    plan.salvages = salvages;
    plan.merges_runs = merges_runs;
    for (uint16_t node = 0; node < composing_nodes; ++node) plan.reducers.push_back({node, 0});
    storage.partitions.clear();
    if (storage.type != StorageType::sequential) {
      for (const std::string& low : lows) storage.partitions.push_back({low, {}});
    }
    plan.storages = {storage};
    mark_victims(metadata, plan);
    return plan;
  }

  /// Finishes the files and makes the metadata, as SnapshotJob::combine does.
  Result<void> keep(const SnapshotPlan& plan, std::vector<SnapshotWriter>& writers,
                    const CombinedRoot& combined) {
    SnapshotMetadata next;
    next.id = plan.snapshot;
    next.base = plan.base;
    next.epoch = plan.epoch;
    next.storages = {{storage.id, storage.type, "storage", combined.root, combined.records}};
    for (uint32_t node = 0; node <= kNodes; ++node) {
      if (auto finished = writers[node].finish(); !finished) return finished;
      if (writers[node].page_count() == 1) continue;
      next.files.push_back({plan.snapshot, node == kNodes ? kCoordinator : node, directory_,
                            writers[node].page_count()});
    }
    if (auto opened = reader.open(next.files); !opened) return opened;
    const bool is_damaged = std::ranges::any_of(
        composed, [](const ComposedPartition& partition) { return partition.stand_ins != 0; });
    const auto wrong =
        add_base_files(plan, metadata, {combined.written, combined.replaced, is_damaged}, next);
    if (wrong) return std::unexpected(*wrong);
    if (is_tree(storage.type)) {
      const auto count =
          records_after(plan, plan.storages[0], metadata, combined.change, is_damaged);
      if (count) next.record_counts.push_back(*count);
    }
    metadata = std::move(next);
    return {};
  }

  PageAhead ahead_{reader};  // used if `ahead` is null
  std::string directory_;
};

}  // namespace atolldb::test
