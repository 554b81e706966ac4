#include "coordinator/snapshots/snapshot_job.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <utility>

#include "coordinator/durability/disk_room.h"
#include "engine/compose/base_files.h"
#include "engine/compose/combine_roots.h"
#include "engine/compose/record_counts.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/hooks/mutants.h"
#include "engine/snapshot/snapshot_writer.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/file/file_system_wrappers.h"

namespace atolldb {
namespace {

/// Longest time that a node waits in one request for the end of its part, in ms. It bounds the
/// delay of progress reports and of a cancellation.
constexpr uint64_t kAwaitMs = 200;
/// Limit instead of kAwaitMs for a job that may pause. Each request carries the goal. So this
/// bounds the time until the nodes learn that the job must not pause.
constexpr uint64_t kPacedAwaitMs = 50;

template <typename... Phases>
constexpr uint32_t set_of(Phases... phases) {
  return ((1u << static_cast<uint32_t>(phases)) | ...);
}

struct PhaseRow {
  const char* name;
  uint32_t after;  // phases that may precede this one
};

const PhaseRow& row_of(SnapshotPhase phase) {
  using enum SnapshotPhase;
  static constexpr PhaseRow kRows[] = {
      {"none", 0},
      {"planning", set_of(none, done, failed, not_installed)},
      {"preparing", set_of(planning)},
      {"capturing", set_of(preparing)},
      {"gleaning", set_of(preparing, capturing)},
      {"combining", set_of(gleaning)},
      {"done", set_of(combining, installing)},
      {"failed", set_of(planning, preparing, capturing, gleaning, combining)},
      {"installing", set_of(none, done)},  // none: another object has made the snapshot
      {"not installed", set_of(installing)},
  };
  static_assert(std::size(kRows) == static_cast<size_t>(not_installed) + 1);
  return kRows[static_cast<size_t>(phase)];
}

/// Member of a node's answer that holds the encoded partitions.
constexpr const char* kPartitions = "partitions";

/// Name of the member with encoded captured ranges: in answers to glean.capture, and in glean.map.
constexpr const char* kCaptured = "captured";

/// Reads the last answer of a node.
Result<NodePart> part_of(const Json& answer, uint32_t node, uint32_t snapshot) {
  NodePart part;
  const auto bytes = find_binary(answer, kPartitions).value_or(std::span<const std::byte>());
  ATOLL_ASSIGN(part.partitions, decode_composed(bytes));
  part.unreadable = answer.value("unreadable", Json::array());
  part.file = {snapshot, node, answer.value("directory", std::string()),
               answer.value("page_count", uint64_t{0})};
  return part;
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

/// Returns whether a composer found an unreadable page, and kept a reference to it in the new
/// snapshot. The page may refer to any older file (R56).
bool has_stand_ins(const std::vector<ComposedPartition>& partitions) {
  return std::ranges::any_of(
      partitions, [](const ComposedPartition& partition) { return partition.stand_ins != 0; });
}

/// Returns the files with pages of the new snapshot.
std::vector<SnapshotFilePlace> new_files(const std::vector<NodePart>& parts,
                                         const SnapshotFilePlace& own) {
  std::vector<SnapshotFilePlace> files;
  for (const NodePart& part : parts) files.push_back(part.file);
  files.push_back(own);
  // Page 0 is the header. A file with no other page does not exist.
  std::erase_if(files, [](const SnapshotFilePlace& place) { return place.page_count <= 1; });
  return files;
}

}  // namespace

uint64_t SnapshotJob::reserve_in(const SnapshotTask& task, const std::string& directory) const {
  return task.keeps_reserve ? disk_reserve(config_, directory) : 0;
}

Result<SnapshotPlan> SnapshotJob::plan(const SnapshotTask& task) {
  enter(SnapshotPhase::planning, task.snapshot);
  const ReservingFileSystem roomy(file_system_, reserve_in(task, config_.cluster.data_dir));
  const auto room = roomy.check_room(config_.cluster.data_dir, 0);
  if (!room) return fail(room.error());
  ATOLL_ASSIGN(const SnapshotTask with_reads, fail_on_error(ask_for_reads(task)));
  return fail_on_error(make_plan(config_, file_system_, with_reads));
}

/// Adds the pages that the nodes have read from snapshots. Without a base there are none.
Result<SnapshotTask> SnapshotJob::ask_for_reads(SnapshotTask task) {
  if (!task.has_volatile_pages || !task.base) return task;
  task.reads.resize(config_.nodes.size());
  const auto asked = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_ASSIGN(const Json answer,
                 call_node_(node, ControlOperation::snapshot_reads, Json::object()));
    SampledReads& reads = task.reads[node];
    reads.node = static_cast<uint16_t>(node);
    reads.count = answer.at("count").get<uint64_t>();
    CHECK(answer.at("pages").size() <= reads.count);
    for (const Json& page : answer.at("pages")) {
      reads.keys.push_back({page.at(0).get<uint32_t>(), reads.node, page.at(1).get<uint64_t>()});
    }
    return {};
  });
  if (!asked) return std::unexpected(asked.error());
  return task;
}

Result<void> SnapshotJob::align(const SnapshotTask& task, SnapshotPlan& plan) {
  CHECK(plan.snapshot == task.snapshot);
  if (!task.has_volatile_pages) return {};
  const auto cuts_of = [&](uint32_t storage_id,
                           const auto& slices) -> Result<std::vector<uint64_t>> {
    // Any node can walk the pages. The modulus spreads the storages over the nodes.
    const auto node = storage_id % static_cast<uint32_t>(config_.nodes.size());
    const Json body = {{"storage", storage_id}, {"keys", slices}};
    ATOLL_ASSIGN(const Json answer, call_node_(node, ControlOperation::snapshot_align, body));
    std::vector<uint64_t> cuts;
    for (const Json& cut : answer.value("keys", Json::array())) {
      if (cut.is_number_unsigned()) cuts.push_back(cut.get<uint64_t>());
    }
    return cuts;
  };
  return fail_on_error(align_partitions(plan.storages, cuts_of));
}

Result<void> SnapshotJob::prepare(const SnapshotTask& task, const SnapshotPlan& plan) {
  enter(SnapshotPhase::preparing, plan.snapshot);
  const std::vector<std::byte> encoded = encode_plan(plan);
  return fail_on_error(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    // The directory in which the node will write its files of this snapshot
    // (Node::start_snapshot_jobs).
    const std::string& directory = log_directory(config_, node, plan.snapshot);
    const Json body = {{"plan", to_binary(encoded)}, {"disk_reserve", reserve_in(task, directory)}};
    ATOLL_TRY(call_node_(node, ControlOperation::glean_prepare, body));
    return {};
  }));
}

Result<std::vector<CapturedRange>> SnapshotJob::capture(const SnapshotTask& task,
                                                        const SnapshotPlan& plan) {
  CHECK(task.has_volatile_pages || !task.captures_pages);
  if (!task.captures_pages) return std::vector<CapturedRange>();
  enter(SnapshotPhase::capturing, plan.snapshot);
  std::vector<std::vector<CapturedRange>> parts(config_.nodes.size());
  const Json body = {{"run", plan.snapshot}};
  const auto captured = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_ASSIGN(const Json answer, call_node_(node, ControlOperation::glean_capture, body));
    const auto bytes = find_binary(answer, kCaptured).value_or(std::span<const std::byte>());
    ATOLL_ASSIGN(parts[node], decode_captured(bytes));
    return {};
  });
  if (!captured) return fail(captured.error());
  std::vector<CapturedRange> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  std::ranges::sort(
      all, {}, [](const CapturedRange& range) { return std::pair(range.storage_id, range.low); });
  if (do_ascend(all)) return all;
  return fail({ExitCode::failed, "two nodes have captured the same pages: internal error"});
}

Result<void> SnapshotJob::map(const SnapshotTask& task, const SnapshotPlan& plan,
                              const std::vector<CapturedRange>& captured) {
  CHECK(!task.goal || task.log_bytes.size() == config_.nodes.size());
  enter(SnapshotPhase::gleaning, plan.snapshot);
  const std::vector<std::byte> encoded = encode_captured(captured);
  return fail_on_error(on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    Json body = {{"run", plan.snapshot}};
    if (!captured.empty()) body[kCaptured] = to_binary(encoded);
    if (task.goal) body["log_bytes"] = task.log_bytes[node];
    if (task.overlaps_install) body["holds"] = true;
    ATOLL_TRY(call_node_(node, ControlOperation::glean_map, body));
    return {};
  }));
}

Result<std::vector<NodePart>> SnapshotJob::reduce_and_compose(const SnapshotTask& task,
                                                              const SnapshotPlan& plan) {
  CHECK(task.snapshot == plan.snapshot);
  std::vector<NodePart> parts(config_.nodes.size());
  const auto composed = on_all_nodes(config_, [&](uint32_t node) -> Result<void> {
    ATOLL_ASSIGN(parts[node], await_part(task, node));
    return {};
  });
  if (!composed) return fail(composed.error());
  return parts;
}

Result<NodePart> SnapshotJob::await_part(const SnapshotTask& task, uint32_t node) {
  constexpr double kAllPpm = 1'000'000;
  Json body = {{"run", task.snapshot}, {"timeout_ms", task.goal ? kPacedAwaitMs : kAwaitMs}};
  for (;;) {
    if (is_cancelled_.load(std::memory_order_relaxed)) {
      return make_error(ExitCode::failed, "the snapshot was cancelled");
    }
    if (task.goal) body["goal_ppm"] = static_cast<uint64_t>(task.goal() * kAllPpm);
    ATOLL_ASSIGN(Json answer, call_node_(node, ControlOperation::glean_wait, body));
    std::optional<NodePart> part;
    if (answer.value("done", false)) {
      ATOLL_ASSIGN(part, part_of(answer, node, task.snapshot));
    }
    answer.erase(kPartitions);  // leaves the members of the progress
    {
      const std::lock_guard guard(mutex_);
      CHECK(node < progress_.size());
      progress_[node] = std::move(answer);
    }
    if (part) return *std::move(part);
  }
}

Result<SnapshotMetadata> SnapshotJob::combine(const SnapshotTask& task, const SnapshotPlan& plan,
                                              std::vector<NodePart> parts) {
  CHECK(parts.size() == config_.nodes.size());
  enter(SnapshotPhase::combining, plan.snapshot);
  record_unreadable(parts);
  return fail_on_error(combine_parts(task, plan, std::move(parts)));
}

Result<SnapshotMetadata> SnapshotJob::combine_parts(const SnapshotTask& task,
                                                    const SnapshotPlan& plan,
                                                    std::vector<NodePart> parts) {
  const std::string& data_dir = config_.cluster.data_dir;
  SnapshotFiles base(file_system_, plan.cluster_uuid);
  ATOLL_TRY(base.open_readable(plan.files));
  ReservingFileSystem roomy(file_system_, reserve_in(task, data_dir));
  ATOLL_ASSIGN(auto writer, SnapshotWriter::create(roomy, {data_dir, kCoordinator, plan.snapshot,
                                                           plan.epoch, plan.cluster_uuid}));
  SnapshotMetadata metadata;
  metadata.id = plan.snapshot;
  metadata.base = plan.base;
  metadata.epoch = plan.epoch;
  metadata.base_epoch = plan.base_epoch;
  metadata.cluster_uuid = plan.cluster_uuid;
  const SnapshotMetadata old = task.base ? *task.base : SnapshotMetadata();
  PageCounts written;
  PageCounts replaced;
  bool is_damaged = false;
  Result<void> combined;
  for (size_t index = 0; combined && index < plan.storages.size(); ++index) {
    const PlannedStorage& storage = plan.storages[index];
    const std::vector<ComposedPartition> partitions = take_partitions(parts, storage.id);
    const auto root = combine_roots(plan, index, partitions, base, writer);
    if (!root) {
      combined = std::unexpected(root.error());
      break;
    }
    const bool is_lossy = has_stand_ins(partitions);
    is_damaged = is_damaged || is_lossy;
    if (is_tree(storage.type)) {
      const auto count = records_after(plan, storage, old, root->change, is_lossy);
      if (count) metadata.record_counts.push_back(*count);
    }
    written.add(root->written);
    replaced.add(root->replaced);
    const auto known = std::ranges::find(task.storages, storage.id, &StorageEntry::id);
    CHECK(known != task.storages.end());
    metadata.storages.push_back({storage.id, storage.type, known->name, root->root, root->records});
  }
  if (combined) combined = writer.finish();
  if (combined) {
    metadata.files = new_files(parts, {plan.snapshot, kCoordinator, data_dir, writer.page_count()});
    const ComposedPages pages = {written.list(), replaced.list(), is_damaged};
    const auto wrong = add_base_files(plan, old, pages, metadata);
    if (wrong) {
      logger_->error("snapshot {}: {}: all older files are kept, and copied by later snapshots",
                     plan.snapshot, wrong->message);
    }
  }
  if (!combined) {
    writer.discard();
    return std::unexpected(combined.error());
  }
  return metadata;
}

Result<void> SnapshotJob::write_metadata(const SnapshotMetadata& metadata) {
  if (!fault::metadata_after_savepoint) {
    const auto written = write_snapshot_metadata(file_system_, config_.cluster.data_dir, metadata);
    if (!written) return fail(written.error());
  }
  enter(SnapshotPhase::done, metadata.id);
  return {};
}

void SnapshotJob::keep(uint32_t snapshot) {
  const Json body = {{"run", snapshot}, {"keep", true}};
  const auto kept = ask_all_nodes(config_, call_node_, ControlOperation::glean_end, body);
  if (!kept) logger_->warn("snapshot {}: {}", snapshot, kept.error().message);
}

std::unexpected<Error> SnapshotJob::fail(const Error& error) {
  const uint32_t snapshot = [this] {
    const std::lock_guard guard(mutex_);
    return snapshot_;
  }();
  discard(snapshot);
  enter(SnapshotPhase::failed, snapshot, error.message);
  return make_error(error.code, "snapshot " + std::to_string(snapshot) + ": " + error.message);
}

/// Removes the files of a failed job on all nodes. Files that cannot be removed do no harm, because
/// ids are not used twice (R37).
void SnapshotJob::discard(uint32_t snapshot) {
  const Json body = {{"run", snapshot}, {"keep", false}};
  const auto discarded = ask_all_nodes(config_, call_node_, ControlOperation::glean_end, body);
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

void SnapshotJob::enter(SnapshotPhase phase, uint32_t snapshot, const std::string& failure) {
  logger_->info("snapshot {}: {}", snapshot, row_of(phase).name);
  const std::lock_guard guard(mutex_);
  CHECK((row_of(phase).after & set_of(phase_)) != 0);
  CHECK(phase != SnapshotPhase::planning || snapshot > snapshot_);  // ids ascend (R37)
  if (snapshot_ != snapshot) {
    CHECK(phase == SnapshotPhase::planning || phase_ == SnapshotPhase::none);
    progress_.assign(config_.nodes.size(), Json());
  }
  phase_ = phase;
  snapshot_ = snapshot;
  failure_ = failure;
}

void SnapshotJob::record_unreadable(const std::vector<NodePart>& parts) {
  Json all = Json::array();
  for (const NodePart& part : parts) {
    for (const Json& page : part.unreadable) {
      damaged_.insert(page.value("storage", uint32_t{0}));
      all.push_back(page);
    }
  }
  if (!all.empty()) {
    logger_->error(
        "{} ranges of the base snapshot cannot be read: they remain unreadable, and later "
        "commits to them are held: `atoll status` lists the ranges",
        all.size());
  }
  const std::lock_guard guard(mutex_);
  unreadable_ = std::move(all);
}

void SnapshotJob::forget_unreadable() {
  const std::lock_guard guard(mutex_);
  unreadable_ = Json::array();
}

Json SnapshotJob::unreadable() const {
  const std::lock_guard guard(mutex_);
  return unreadable_;
}

Json SnapshotJob::status() const {
  const std::lock_guard guard(mutex_);
  if (phase_ == SnapshotPhase::none) return Json::object();
  Json status = {{"snapshot", snapshot_},
                 {"phase", row_of(phase_).name},
                 {"unreadable", unreadable_},
                 {"progress", sum_of_progress(progress_)}};
  if (phase_ == SnapshotPhase::failed) status["failure"] = failure_;
  if (installing_ != 0) status["installing"] = installing_;
  return status;
}

}  // namespace atolldb
