#include "coordinator/gleaner/gleaner_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/compose/combine_roots.h"
#include "engine/gleaner/plan_codec.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/try.h"
#include "shared/file/reserving_file_system.h"

namespace atolldb {
namespace {

/// Longest wait of one request, in ms. It bounds the delay of progress reports and of a
/// cancellation.
constexpr uint64_t kAwaitMs = 200;

Error of_run(uint32_t snapshot, const Error& error) {
  return {error.code, "snapshot " + std::to_string(snapshot) + ": " + error.message};
}

/// Returns the sums of the nodes' progress, by name.
Json sum_of(const std::vector<Json>& progress) {
  std::map<std::string, uint64_t> sums;
  for (const Json& node : progress) {
    for (const auto& [name, value] : node.items()) {
      if (name != "v" && value.is_number_unsigned()) sums[name] += value.get<uint64_t>();
    }
  }
  return sums;
}

/// Takes the partitions of one storage out of all nodes' parts, ascending.
std::vector<ComposedPartition> take_partitions(std::vector<NodePart>& parts, uint32_t storage_id) {
  std::vector<ComposedPartition> taken;
  for (NodePart& part : parts) {
    for (ComposedPartition& partition : part.partitions) {
      if (partition.storage_id == storage_id) taken.push_back(std::move(partition));
    }
  }
  std::ranges::sort(taken, {}, &ComposedPartition::partition);
  return taken;
}

/// Returns the files that pages of the new snapshot may lie in.
std::vector<SnapshotFilePlace> all_files(const GleanPlan& plan, const std::vector<NodePart>& parts,
                                         const SnapshotFilePlace& own) {
  std::vector<SnapshotFilePlace> files;
  // A stand-in that a rewrite kept refers to a page in an older file, which may refer to further
  // files (R56).
  const bool has_stand_ins = std::ranges::any_of(parts, [](const NodePart& part) {
    return std::ranges::any_of(part.partitions, [](const ComposedPartition& partition) {
      return partition.stand_ins != 0;
    });
  });
  if (!plan.rewrites || has_stand_ins) files = plan.files;
  for (const NodePart& part : parts) files.push_back(part.file);
  files.push_back(own);
  // Page 0 is the header. If nothing else was written, there is no file.
  std::erase_if(files, [](const SnapshotFilePlace& place) { return place.page_count <= 1; });
  return files;
}

}  // namespace

Result<SnapshotMetadata> GleanerRun::run(const GleanTask& task) {
  set_phase(task.snapshot, "planning");
  Result<SnapshotMetadata> metadata = [&]() -> Result<SnapshotMetadata> {
    const ReservingFileSystem roomy(file_system_, task.disk_reserve);
    ATOLL_TRY(roomy.check_room(config_.cluster.data_dir, 0));
    ATOLL_ASSIGN(auto plan, make_plan(config_, file_system_, task));
    ATOLL_TRY(align(task, plan));
    return run_planned(task, plan);
  }();
  if (metadata) return metadata;
  discard(task.snapshot);
  set_phase(task.snapshot, "failed");
  note_failure(metadata.error());
  return std::unexpected(of_run(task.snapshot, metadata.error()));
}

Result<SnapshotMetadata> GleanerRun::run_planned(const GleanTask& task, const GleanPlan& plan) {
  ATOLL_ASSIGN(auto parts, glean_on_nodes(task, plan));
  set_phase(task.snapshot, "combining");
  note_unreadable(parts);
  ATOLL_ASSIGN(auto metadata, combine(task, plan, std::move(parts)));
  if (!mutant(Mutant::metadata_after_savepoint)) {
    ATOLL_TRY(write_snapshot_metadata(file_system_, config_.cluster.data_dir, metadata));
  }
  set_phase(task.snapshot, "done");
  return metadata;
}

Result<std::vector<NodePart>> GleanerRun::glean_on_nodes(const GleanTask& task,
                                                         const GleanPlan& plan) {
  set_phase(plan.snapshot, "preparing");
  const Json prepare = {{"plan", encode_plan(plan)}, {"disk_reserve", task.disk_reserve}};
  const Json run = {{"run", plan.snapshot}};
  const auto ask_all = [&](const char* op, const Json& body) {
    return on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
      ATOLL_TRY(call_node_(node, op, body));
      return {};
    });
  };
  // Every inbox must accept records before a mapper sends any.
  ATOLL_TRY(ask_all("glean.prepare", prepare));
  set_phase(plan.snapshot, "gleaning");
  ATOLL_TRY(ask_all("glean.map", run));
  std::vector<NodePart> parts(config_.nodes.size());
  ATOLL_TRY(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_ASSIGN(auto part, await(node, plan.snapshot));
    parts[node] = std::move(part);
    return {};
  }));
  return parts;
}

Result<NodePart> GleanerRun::await(uint32_t node, uint32_t snapshot) {
  const Json body = {{"run", snapshot}, {"timeout_ms", kAwaitMs}};
  for (;;) {
    if (is_cancelled_.load(std::memory_order_relaxed)) {
      return make_error(ExitCode::failed, "its run was cancelled");
    }
    ATOLL_ASSIGN(auto answer, call_node_(node, "glean.wait", body));
    {
      const std::lock_guard guard(mutex_);
      progress_[node] = answer;
    }
    if (answer.value("done", false) == false) continue;
    ATOLL_ASSIGN(auto partitions, decode_composed(answer.value("partitions", std::string())));
    NodePart part;
    part.partitions = std::move(partitions);
    part.unreadable = answer.value("unreadable", Json::array());
    part.file = {snapshot, node, answer.value("directory", std::string()),
                 answer.value("page_count", uint64_t{0})};
    return part;
  }
}

Result<SnapshotMetadata> GleanerRun::combine(const GleanTask& task, const GleanPlan& plan,
                                             std::vector<NodePart> parts) {
  const std::string& data_dir = config_.cluster.data_dir;
  SnapshotFiles base(file_system_, plan.cluster_uuid);
  ATOLL_TRY(base.open_readable(plan.files));
  ReservingFileSystem roomy(file_system_, task.disk_reserve);
  ATOLL_ASSIGN(auto writer, SnapshotWriter::create(roomy, {data_dir, kCoordinator, plan.snapshot,
                                                           plan.epoch, plan.cluster_uuid}));
  SnapshotMetadata metadata;
  metadata.id = plan.snapshot;
  metadata.base = plan.base;
  metadata.epoch = plan.epoch;
  metadata.base_epoch = plan.base_epoch;
  metadata.cluster_uuid = plan.cluster_uuid;
  Result<void> combined;
  for (size_t index = 0; combined && index < plan.storages.size(); ++index) {
    const GleanStorage& storage = plan.storages[index];
    const auto root = combine_roots(plan, index, take_partitions(parts, storage.id), base, writer);
    if (!root) {
      combined = std::unexpected(root.error());
      break;
    }
    const auto known = std::ranges::find(task.storages, storage.id, &StorageToGlean::id);
    metadata.storages.push_back({storage.id, storage.type, known->name, root->root, root->records});
  }
  if (combined) combined = writer.finish();
  if (!combined) {
    writer.discard();
    return std::unexpected(combined.error());
  }
  metadata.files =
      all_files(plan, parts, {plan.snapshot, kCoordinator, data_dir, writer.page_count()});
  return metadata;
}

void GleanerRun::keep(uint32_t snapshot) {
  const auto kept = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node_(node, "glean.end", Json{{"run", snapshot}, {"keep", true}}));
    return {};
  });
  if (!kept) logger_->warn("snapshot {}: {}", snapshot, kept.error().message);
}

/// Files that cannot be removed do no harm, because ids are not used twice (R37).
void GleanerRun::discard(uint32_t snapshot) {
  const auto discarded = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node_(node, "glean.end", Json{{"run", snapshot}, {"keep", false}}));
    return {};
  });
  if (!discarded) logger_->warn("snapshot {}: {}", snapshot, discarded.error().message);
  const std::string& data_dir = config_.cluster.data_dir;
  for (const std::string& path : {snapshot_metadata_path(data_dir, snapshot),
                                  snapshot_file_path(data_dir, kCoordinator, snapshot)}) {
    const auto exists = file_system_.exists(path);
    if (!exists || !*exists) continue;
    if (const auto removed = file_system_.remove(path); !removed) {
      logger_->warn("snapshot {}: {}", snapshot, removed.error().message);
    }
  }
}

void GleanerRun::set_phase(uint32_t snapshot, const char* phase) {
  logger_->info("snapshot {}: {}", snapshot, phase);
  const std::lock_guard guard(mutex_);
  if (status_.value("snapshot", 0u) != snapshot) progress_.assign(config_.nodes.size(), Json());
  status_ = {{"snapshot", snapshot}, {"phase", phase}};
}

void GleanerRun::note_failure(const Error& error) {
  const std::lock_guard guard(mutex_);
  status_["failure"] = error.message;
}

void GleanerRun::note_unreadable(const std::vector<NodePart>& parts) {
  Json all = Json::array();
  for (const NodePart& part : parts) {
    for (const Json& page : part.unreadable) all.push_back(page);
  }
  if (!all.empty()) {
    logger_->error(
        "{} ranges of the base cannot be read: they stay unreadable, and what was "
        "committed there since is held: `atoll status` lists them",
        all.size());
  }
  const std::lock_guard guard(mutex_);
  unreadable_ = std::move(all);
}

void GleanerRun::forget_unreadable() {
  const std::lock_guard guard(mutex_);
  unreadable_ = Json::array();
}

Json GleanerRun::status() const {
  const std::lock_guard guard(mutex_);
  Json status = status_;
  if (!status.empty()) status["unreadable"] = unreadable_;
  if (!status.empty()) status["progress"] = sum_of(progress_);
  return status;
}

Result<void> open_on_nodes(const Config& config, const NodeCall& call_node,
                           const std::vector<SnapshotFilePlace>& places,
                           const std::vector<SnapshotFilePlace>& kept) {
  const auto list_of = [](const std::vector<SnapshotFilePlace>& files) {
    Json list = Json::array();
    for (const SnapshotFilePlace& place : files) {
      list.push_back({{"snapshot", place.snapshot},
                      {"node", place.node},
                      {"directory", place.directory},
                      {"page_count", place.page_count}});
    }
    return list;
  };
  const Json body = {{"places", list_of(places)}, {"kept", list_of(kept)}};
  return on_all_nodes(config, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node(node, "snapshot.open", body));
    return {};
  });
}

Result<void> publish_on_nodes(const Config& config, const NodeCall& call_node,
                              const SnapshotMetadata& snapshot) {
  Json roots = Json::array();
  for (const SnapshotStorage& storage : snapshot.storages) {
    const uint64_t root = storage.root.is_null() ? 0 : storage.root.word();
    roots.push_back(Json::array({storage.id, root}));
  }
  const Json body = {{"id", snapshot.id}, {"epoch", snapshot.epoch}, {"roots", std::move(roots)}};
  return on_all_nodes(config, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node(node, "snapshot.publish", body));
    return {};
  });
}

Result<void> withdraw_on_nodes(const Config& config, const NodeCall& call_node,
                               const std::set<uint32_t>& keep) {
  return on_all_nodes(config, [&](uint32_t node) -> Result<void> {
    ATOLL_TRY(call_node(node, "snapshot.withdraw", {{"keep", keep}}));
    return {};
  });
}

}  // namespace atolldb
