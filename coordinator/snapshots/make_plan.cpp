#include "coordinator/snapshots/make_plan.h"

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "engine/compose/base_files.h"
#include "engine/format/tree_key.h"
#include "engine/gleaner/assign_partitions.h"
#include "engine/gleaner/sample_victims.h"
#include "engine/log/log_files.h"
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

std::string low_text(uint64_t slice) {
  if (slice == 0) return {};
  std::string text(sizeof slice, '\0');
  put_slice(slice, reinterpret_cast<std::byte*>(text.data()));
  return text;
}

/// Returns the last closed epoch at the begin of each file of the stream, ascending. Omits epochs
/// that do not lie between stream.covered_epoch and last_epoch. Skips files with damaged headers:
/// the mapper of the part before reads them, and reports the damage.
Result<std::vector<uint64_t>> epochs_between_files(FileSystem& file_system,
                                                   const PlannedStream& planned) {
  const LogStream& stream = planned.stream;
  ATOLL_ASSIGN(auto places, log_files_in(file_system, {stream.directory}));
  std::erase_if(places, [&](const LogFilePlace& place) {
    return place.node != stream.node || place.name.incarnation != stream.incarnation ||
           place.name.logger != stream.logger;
  });
  std::ranges::sort(places, {}, [](const LogFilePlace& place) { return place.name.ordinal; });
  std::vector<uint64_t> epochs;
  for (const LogFilePlace& place : places) {
    ATOLL_ASSIGN(const auto begin, begin_of(file_system, place));
    if (!begin || (stream.cluster_uuid && begin->cluster_uuid != *stream.cluster_uuid)) continue;
    const uint64_t epoch = begin->closed_epoch;
    const uint64_t least = std::max(stream.covered_epoch, stream.start_epoch.value_or(0));
    if (epoch <= least || epoch >= planned.last_epoch) continue;
    if (epochs.empty() || epoch > epochs.back()) epochs.push_back(epoch);
  }
  return epochs;
}

}  // namespace

std::vector<JobThreads> threads_of(const Config& config, const SnapshotTask& task) {
  std::vector<JobThreads> threads;
  for (const NodeConfig& node : config.nodes) {
    threads.push_back(task.has_volatile_pages ? running_threads(node) : recovery_threads(node));
  }
  return threads;
}

Result<std::vector<PlannedStream>> split_stream(FileSystem& file_system,
                                                const PlannedStream& stream, uint32_t parts) {
  CHECK(parts >= 1);
  std::vector<PlannedStream> split = {stream};
  if (parts == 1) return split;
  ATOLL_ASSIGN(const std::vector<uint64_t> epochs, epochs_between_files(file_system, stream));
  for (uint32_t part = 1; part < parts; ++part) {
    if (epochs.empty()) break;
    // The epochs lie between files, so there is one file more than epochs.
    const size_t file = (epochs.size() + 1) * part / parts;
    if (file == 0 || epochs[file - 1] <= split.back().stream.covered_epoch) continue;
    PlannedStream next = split.back();
    split.back().last_epoch = next.stream.covered_epoch = epochs[file - 1];
    split.push_back(std::move(next));
  }
  CHECK(split.size() <= parts && split.back().last_epoch == stream.last_epoch);
  return split;
}

Result<std::vector<PlannedMapper>> assign_streams(FileSystem& file_system,
                                                  const std::vector<JobThreads>& threads,
                                                  const std::vector<PlannedStream>& streams) {
  const auto nodes = static_cast<uint32_t>(threads.size());
  CHECK(nodes != 0);
  std::vector<std::vector<PlannedStream>> by_node(nodes);
  uint32_t orphans = 0;
  for (const PlannedStream& stream : streams) {
    const uint32_t node = stream.stream.node;
    by_node[node < nodes ? node : orphans++ % nodes].push_back(stream);
  }
  std::vector<PlannedMapper> list;
  for (uint32_t node = 0; node < nodes; ++node) {
    const size_t count = by_node[node].size();
    if (count == 0) continue;
    const uint32_t mappers = threads[node].mappers;
    const auto parts = static_cast<uint32_t>((mappers + count - 1) / count);
    std::vector<PlannedMapper> own(mappers);
    // A mapper reads at most one part of a stream: a stream has at most as many parts as there are
    // mappers, and they take the parts in turn.
    size_t turn = 0;
    for (const PlannedStream& stream : by_node[node]) {
      ATOLL_ASSIGN(auto split, split_stream(file_system, stream, parts));
      for (PlannedStream& part : split) own[turn++ % mappers].streams.push_back(std::move(part));
    }
    for (uint32_t mapper = 0; mapper < std::min<size_t>(turn, mappers); ++mapper) {
      own[mapper].node = static_cast<uint16_t>(node);
      own[mapper].mapper = static_cast<uint16_t>(mapper);
      list.push_back(std::move(own[mapper]));
    }
  }
  return list;
}

std::vector<ReducerPlace> reducers_of(const std::vector<JobThreads>& threads) {
  std::vector<ReducerPlace> places;
  for (uint32_t node = 0; node < threads.size(); ++node) {
    for (uint32_t reducer = 0; reducer < threads[node].reducers; ++reducer) {
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
  const std::vector<JobThreads> threads = threads_of(config, task);
  ATOLL_ASSIGN(plan.mappers, assign_streams(file_system, threads, task.streams));
  plan.reducers = reducers_of(threads);
  CHECK(!plan.reducers.empty());
  std::map<uint32_t, uint64_t> victim_pages;  // live pages of victims, by storage
  if (task.base) victim_pages = mark_victims(*task.base, plan);
  ATOLL_ASSIGN(auto sample, sample_keys(file_system, plan.storages, task.streams, plan.base_epoch));
  if (!victim_pages.empty()) {
    SnapshotFiles base(file_system, plan.cluster_uuid);
    ATOLL_TRY(base.open_readable(plan.files));
    const auto more = sample_victims(base, plan, victim_pages);
    sample.keys.insert(sample.keys.end(), more.begin(), more.end());
  }
  assign_partitions(plan.storages, std::move(sample), plan.reducers, task.reads);
  return plan;
}

uint64_t first_slice_of(const PlannedPartition& partition) {
  return slice_of(std::as_bytes(std::span(partition.low)));
}

Result<void> align_partitions(std::vector<PlannedStorage>& storages, const CutsOf& cuts_of) {
  for (PlannedStorage& storage : storages) {
    if (!is_tree(storage.type) || storage.partitions.size() < 2) continue;
    std::vector<uint64_t> slices;
    for (size_t i = 1; i < storage.partitions.size(); ++i) {
      slices.push_back(first_slice_of(storage.partitions[i]));
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
      if (!kept.empty() && low == first_slice_of(kept.back())) kept.pop_back();
      kept.push_back({low_text(low), storage.partitions[i].owner});
    }
    CHECK(!kept.empty() && kept.size() <= storage.partitions.size());
    storage.partitions = std::move(kept);
  }
  return {};
}

}  // namespace atolldb
