#include "coordinator/gleaner/make_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/gleaner/assign_partitions.h"

namespace atolldb {
namespace {

std::vector<GleanStorage> storages_of(const GleanTask& task) {
  std::map<uint32_t, SnapshotPointer> roots;
  if (task.base) {
    for (const SnapshotStorage& storage : task.base->storages) roots[storage.id] = storage.root;
  }
  std::vector<GleanStorage> storages;
  for (const StorageToGlean& storage : task.storages) {
    GleanStorage planned;
    planned.id = storage.id;
    planned.type = storage.type;
    planned.payload_bytes = storage.payload_bytes;
    planned.record_count = storage.record_count;
    if (const auto root = roots.find(storage.id); root != roots.end()) {
      planned.base_root = root->second;
    }
    storages.push_back(std::move(planned));
  }
  std::ranges::sort(storages, {}, &GleanStorage::id);
  return storages;
}

}  // namespace

std::vector<GleanMapper> assign_streams(const Config& config,
                                        const std::vector<GleanStream>& streams) {
  std::map<std::pair<uint32_t, uint32_t>, GleanMapper> mappers;  // by node and mapper
  std::vector<uint32_t> turns(config.nodes.size(), 0);
  uint32_t orphans = 0;
  for (const GleanStream& stream : streams) {
    uint32_t node = stream.stream.node;
    if (node >= config.nodes.size()) {
      node = orphans++ % static_cast<uint32_t>(config.nodes.size());
    }
    const uint32_t ordinal = turns[node]++ % config.nodes[node].mappers;
    GleanMapper& mapper = mappers[{node, ordinal}];
    mapper.node = static_cast<uint16_t>(node);
    mapper.mapper = static_cast<uint16_t>(ordinal);
    mapper.streams.push_back(stream);
  }
  std::vector<GleanMapper> list;
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

Result<GleanPlan> make_plan(const Config& config, FileSystem& file_system, const GleanTask& task) {
  GleanPlan plan;
  plan.snapshot = task.snapshot;
  plan.epoch = task.epoch;
  plan.rewrites = task.rewrites;
  plan.cluster_uuid = task.cluster_uuid;
  if (task.base) {
    plan.base = task.base->id;
    plan.base_epoch = task.base->epoch;
    plan.files = task.base->files;
  }
  plan.storages = storages_of(task);
  plan.mappers = assign_streams(config, task.streams);
  plan.reducers = reducers_of(config);
  auto sample = sample_keys(file_system, plan.storages, task.streams, plan.base_epoch);
  if (!sample) return std::unexpected(sample.error());
  assign_partitions(plan.storages, *std::move(sample), plan.reducers);
  return plan;
}

}  // namespace atolldb
