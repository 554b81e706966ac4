#include "coordinator/snapshots/make_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/compose/base_files.h"
#include "engine/format/tree_key.h"
#include "engine/gleaner/assign_partitions.h"
#include "engine/gleaner/sample_victims.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

std::vector<PlannedStorage> storages_of(const SnapshotTask& task) {
  std::map<uint32_t, SnapshotPointer> roots;
  if (task.base) {
    for (const SnapshotStorage& storage : task.base->storages) roots[storage.id] = storage.root;
  }
  std::vector<PlannedStorage> storages;
  for (const StorageEntry& storage : task.storages) {
    PlannedStorage planned;
    planned.id = storage.id;
    planned.type = storage.type;
    planned.payload_bytes = storage.payload_bytes;
    planned.record_count = storage.record_count;
    if (const auto root = roots.find(storage.id); root != roots.end()) {
      planned.base_root = root->second;
    }
    storages.push_back(std::move(planned));
  }
  std::ranges::sort(storages, {}, &PlannedStorage::id);
  return storages;
}

/// Returns the first slice of the partition. It is 0 if `low` is empty.
uint64_t low_of(const PlannedPartition& partition) {
  return slice_of(std::as_bytes(std::span(partition.low)));
}

std::string low_text(uint64_t slice) {
  if (slice == 0) return {};
  std::string text(sizeof slice, '\0');
  put_slice(slice, reinterpret_cast<std::byte*>(text.data()));
  return text;
}

}  // namespace

std::vector<PlannedMapper> assign_streams(const Config& config,
                                          const std::vector<PlannedStream>& streams) {
  CHECK(!config.nodes.empty());
  std::map<std::pair<uint32_t, uint32_t>, PlannedMapper> mappers;  // by node and mapper
  std::vector<uint32_t> turns(config.nodes.size(), 0);
  uint32_t orphans = 0;
  for (const PlannedStream& stream : streams) {
    uint32_t node = stream.stream.node;
    if (node >= config.nodes.size()) {
      node = orphans++ % static_cast<uint32_t>(config.nodes.size());
    }
    CHECK(config.nodes[node].mappers != 0);
    const uint32_t ordinal = turns[node]++ % config.nodes[node].mappers;
    PlannedMapper& mapper = mappers[{node, ordinal}];
    mapper.node = static_cast<uint16_t>(node);
    mapper.mapper = static_cast<uint16_t>(ordinal);
    mapper.streams.push_back(stream);
  }
  std::vector<PlannedMapper> list;
  for (auto& [place, mapper] : mappers) list.push_back(std::move(mapper));
  return list;
}

std::vector<ReducerPlace> reducers_of(const Config& config) {
  std::vector<ReducerPlace> places;
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    for (uint32_t reducer = 0; reducer < config.nodes[node].reducers; ++reducer) {
      places.push_back({static_cast<uint16_t>(node), static_cast<uint16_t>(reducer)});
    }
  }
  return places;
}

Result<SnapshotPlan> make_plan(const Config& config, FileSystem& file_system,
                               const SnapshotTask& task) {
  CHECK(task.snapshot != 0 && task.epoch <= kMaxEpoch);
  CHECK(!task.base || (task.base->id < task.snapshot && task.base->epoch <= task.epoch));
  CHECK(task.victims.empty() || (task.base && std::ranges::is_sorted(task.victims)));
  SnapshotPlan plan;
  plan.snapshot = task.snapshot;
  plan.epoch = task.epoch;
  plan.victims = task.victims;
  plan.salvages = task.salvages;
  plan.merges_runs = task.merges_runs;
  plan.cluster_uuid = task.cluster_uuid;
  if (task.base) {
    plan.base = task.base->id;
    plan.base_epoch = task.base->epoch;
    plan.files = task.base->files;
  }
  plan.storages = storages_of(task);
  plan.mappers = assign_streams(config, task.streams);
  plan.reducers = reducers_of(config);
  CHECK(!plan.reducers.empty());
  std::map<uint32_t, uint64_t> victim_pages;  // live pages by storage
  if (task.base) victim_pages = mark_victims(*task.base, plan);
  ATOLL_ASSIGN(auto sample, sample_keys(file_system, plan.storages, task.streams, plan.base_epoch));
  if (!victim_pages.empty()) {
    SnapshotFiles base(file_system, plan.cluster_uuid);
    ATOLL_TRY(base.open_readable(plan.files));
    const auto more = sample_victims(base, plan, victim_pages);
    sample.insert(sample.end(), more.begin(), more.end());
  }
  assign_partitions(plan.storages, std::move(sample), plan.reducers);
  return plan;
}

Result<void> align_partitions(std::vector<PlannedStorage>& storages, const CutsOf& cuts_of) {
  for (PlannedStorage& storage : storages) {
    if (storage.type != StorageType::mastertree || storage.partitions.size() < 2) continue;
    std::vector<uint64_t> slices;
    for (size_t i = 1; i < storage.partitions.size(); ++i) {
      slices.push_back(low_of(storage.partitions[i]));
    }
    ATOLL_ASSIGN(auto cuts, cuts_of(storage.id, slices));
    if (cuts.size() != slices.size()) {
      return make_error(ExitCode::failed, "storage " + std::to_string(storage.id) +
                                              ": a node knows not all of the boundaries that it "
                                              "was asked for");
    }
    std::vector<PlannedPartition> kept;
    uint64_t low = 0;
    for (size_t i = 0; i < storage.partitions.size(); ++i) {
      // Ignores a boundary below the previous one. It may occur, because the tree changes during
      // the request.
      if (i != 0) low = std::max(low, cuts[i - 1]);
      // Removes the previous partition if it begins at the same slice, because it is empty then.
      if (!kept.empty() && low == low_of(kept.back())) kept.pop_back();
      kept.push_back({low_text(low), storage.partitions[i].owner});
    }
    CHECK(!kept.empty() && kept.size() <= storage.partitions.size());
    storage.partitions = std::move(kept);
  }
  return {};
}

}  // namespace atolldb
