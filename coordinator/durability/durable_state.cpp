#include "coordinator/durability/durable_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/checkpoint/stored_checkpoints.h"
#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint_snapshots.h"
#include "engine/recovery/checkpoint_start.h"
#include "engine/recovery/leftovers.h"
#include "engine/recovery/salvage.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

std::vector<LoggerPlace> loggers_of(const Config& config) {
  std::vector<LoggerPlace> places;
  for (uint32_t node = 0; node < config.nodes.size(); ++node) {
    for (uint32_t logger = 0; logger < config.nodes[node].loggers; ++logger) {
      places.push_back({static_cast<uint16_t>(node), static_cast<uint16_t>(logger),
                        log_directory(config, node, logger)});
    }
  }
  return places;
}

/// Returns `found`, but both lists, "left_out" and "ranges", begin with the entries of `earlier`.
/// Each entry is listed once.
Json merge_reports(const Json& earlier, Json found) {
  for (const char* part : {"left_out", "ranges"}) {
    Json entries = earlier.value(part, Json::array());
    for (const Json& entry : found.value(part, Json::array())) {
      const bool is_known = std::find(entries.begin(), entries.end(), entry) != entries.end();
      if (!is_known) entries.push_back(entry);
    }
    found[part] = std::move(entries);
  }
  return found;
}

/// A start-up checks at most this many logs at a time. More threads would rather wait for the
/// devices than compute.
constexpr uint32_t kMaxCheckThreads = 16;

}  // namespace

DurableState::DurableState(const Config& config, std::unique_ptr<FileSystem> files)
    : config_(config),
      files_(std::move(files)),
      run_(on_threads(std::min(Machine::detect().usable_cpus(), kMaxCheckThreads))),
      ballast_(config_, *files_) {}

Result<std::unique_ptr<DurableState>> DurableState::open(const Config& config, uint64_t incarnation,
                                                         std::unique_ptr<FileSystem> file_system,
                                                         const Logger& logger) {
  std::unique_ptr<DurableState> state(new DurableState(config, std::move(file_system)));
  const std::string& data_dir = config.cluster.data_dir;
  FileSystem& files = *state->files_;
  ATOLL_ASSIGN(const std::optional<uint32_t> salvage, find_salvage(files, data_dir));
  state->salvage_ = salvage;
  Result<LogStart> start = examine(files, data_dir, node_directories(config),
                                   salvage ? Damage::left_out : Damage::refused, state->run_);
  if (!start) {
    if (salvage) {
      const auto given_up = give_up_salvage(files, data_dir, *salvage);
      if (!given_up) logger->warn("the next start is a salvage, too: {}", given_up.error().message);
    }
    return std::unexpected(start.error());
  }
  ATOLL_TRY(choose_scheme(*start, data_dir, config.durability.scheme));
  if (!start->damaged_slot.empty()) {
    logger->warn("one of the two copies of the savepoint is not used: {}", start->damaged_slot);
  }
  if (!start->fallback.empty()) logger->error("{}", start->fallback);
  for (const std::string& text : start->left_out) logger->error("salvage: left out: {}", text);
  start->incarnation = std::max(start->incarnation, incarnation);
  start->start_epoch = std::max(start->start_epoch, config.cluster.start_epoch);
  state->start_ = *std::move(start);
  // Collects the directories now, because later steps remove incarnations from the savepoint.
  state->directories_ = state->all_directories();
  if (state->salvage_) {
    // Writes the report before the cut is stored. If this attempt fails afterwards, the next one
    // does not find the damage that the cut excludes.
    ATOLL_TRY(state->report_salvage(Json::object({{"left_out", state->start_.left_out}})));
  }
  // Tells the archive the cuts of all incarnations, before store_cut forgets those whose commits
  // are all in a snapshot. Their last log files may not be archived yet (R72). If the archive's
  // state cannot be stored, the savepoint keeps these incarnations.
  const auto open_archive = [&]() -> Result<bool> {
    ATOLL_ASSIGN(state->archive_, ArchiveProgress::open(files, config, state->start_.savepoint,
                                                        state->salvages(), logger));
    return state->may_forget_log();
  };
  ATOLL_TRY(store_cut(files, data_dir, state->start_,
                      config.archive.is_on() ? open_archive : std::function<Result<bool>()>()));
  if (state->salvage_ && !config.archive.is_on()) {
    ATOLL_TRY(ArchiveProgress::note_salvage(files, data_dir));
  }
  // Removes no files in two cases. A salvage deletes nothing. After a fallback the user may still
  // restore the damaged newest snapshot (R55).
  if (!state->salvage_ && state->start_.fallback.empty()) state->remove_leftovers(logger);
  files.finish_removals();  // the nodes need the room for the recovery
  ATOLL_ASSIGN(DdlLog ddl, DdlLog::open(files, data_dir, state->data_uuid()));
  if (!ddl.torn().empty())
    logger->warn("the DDL log ends with a torn record, which is ignored: {}", ddl.torn());
  state->ddl_.emplace(std::move(ddl));
  state->ddl_records_.store(state->ddl_->records().size(), std::memory_order_relaxed);
  return state;
}

/// Removes leftovers. An error is only logged, because files that remain cost only disk room.
void DurableState::remove_leftovers(const Logger& logger) {
  const auto removed =
      atolldb::remove_leftovers(*files_, config_.cluster.data_dir, start_.savepoint, directories_,
                                start_.incarnation, keep_log());
  if (!removed) {
    logger->warn("leftovers of earlier starts are not removed: {}", removed.error().message);
    return;
  }
  if (!removed->removed.empty()) {
    logger->info("{} files removed: leftovers of earlier starts, and files that nothing needs",
                 removed->removed.size());
  }
  for (const std::string& path : removed->damaged_logs) {
    logger->warn(
        "{}: no savepoint lists it, and its first blocks are damaged: it is kept: remove it if "
        "its room is needed",
        path);
  }
}

KeepLog DurableState::keep_log() const {
  if (archive_ == nullptr) return {};
  return [this](const LogFilePlace& place) { return archive_->must_stay(place); };
}

bool DurableState::may_forget_log() {
  return archive_ == nullptr || archive_->store_pending().has_value();
}

void DurableState::keep_ballast(const Logger& logger) {
  const auto built = ballast_.rebuild(directories_);
  if (!built && !lacks_ballast_) {
    logger->warn("there is no ballast for a recovery on a full disk: {}", built.error().message);
  }
  if (built && lacks_ballast_) logger->info("the ballast exists again");
  lacks_ballast_ = !built;
}

Result<bool> DurableState::release_ballast() {
  ATOLL_ASSIGN(const uint32_t released, ballast_.release(directories_));
  return released != 0;
}

/// Returns the directories with files of logs, of the newest checkpoint, and of the newest, pinned
/// and kept snapshots. Ignores pinned snapshots whose metadata cannot be read. While there is such
/// a snapshot, no snapshot file is deleted.
std::set<std::string> DurableState::all_directories() const {
  const Savepoint& savepoint = start_.savepoint;
  std::set<std::string> all =
      log_directories(savepoint, config_.cluster.data_dir, node_directories(config_));
  const auto add = [&](const SnapshotMetadata& metadata) {
    for (const SnapshotFilePlace& file : metadata.files) all.insert(file.directory);
  };
  if (start_.snapshot) add(*start_.snapshot);
  const auto add_checkpoint = [&](const CheckpointMetadata& metadata) {
    for (const CheckpointFileInfo& file : metadata.files) all.insert(file.directory);
  };
  if (start_.checkpoint) add_checkpoint(*start_.checkpoint);
  for (const PinnedSnapshot& pin : savepoint.pinned) {
    if (savepoint.scheme == DurabilityScheme::silor) {
      const auto metadata = read_checkpoint_metadata(*files_, config_.cluster.data_dir, pin.id);
      if (metadata) add_checkpoint(*metadata);
      continue;
    }
    const auto metadata = read_snapshot_metadata(*files_, config_.cluster.data_dir, pin.id);
    if (metadata) add(*metadata);
  }
  for (const SnapshotFilePlace& place : kept_places()) all.insert(place.directory);
  return all;
}

std::vector<SnapshotFilePlace> DurableState::kept_places() const {
  std::vector<SnapshotFilePlace> places;
  for (const KeptSnapshot& kept : start_.savepoint.kept) {
    const auto metadata = read_snapshot_metadata(*files_, config_.cluster.data_dir, kept.id);
    if (!metadata) continue;
    places.insert(places.end(), metadata->files.begin(), metadata->files.end());
  }
  return places;
}

Result<std::map<std::string, size_t>> DurableState::left_directories() {
  std::map<std::string, size_t> left;
  for (const std::string& directory : directories_) left[directory] = 0;
  left.erase(config_.cluster.data_dir);
  for (const std::string& directory : node_directories(config_)) left.erase(directory);
  if (left.empty()) return left;
  const ClusterUuid& own = start_.savepoint.cluster_uuid;
  ATOLL_ASSIGN(auto logs, log_files_in(*files_, directories_));
  for (const LogFilePlace& place : logs) {
    const auto found = left.find(place.directory);
    if (found == left.end()) continue;
    ATOLL_ASSIGN(const auto foreign, is_foreign(*files_, place, own));
    if (!foreign) ++found->second;
  }
  ATOLL_ASSIGN(auto snapshots, snapshot_files_in(*files_, config_.cluster.data_dir, directories_));
  for (const StoredSnapshotFile& file : snapshots) {
    const auto found = left.find(file.directory);
    if (found == left.end()) continue;
    ATOLL_ASSIGN(const auto foreign, is_foreign(*files_, file, own));
    if (!foreign) ++found->second;
  }
  ATOLL_ASSIGN(auto checkpoints,
               checkpoint_files_in(*files_, config_.cluster.data_dir, directories_));
  for (const StoredCheckpointFile& file : checkpoints) {
    const auto found = left.find(file.directory);
    if (found == left.end()) continue;
    ATOLL_ASSIGN(const auto foreign, is_foreign(*files_, file, own));
    if (!foreign) ++found->second;
  }
  return left;
}

Result<void> DurableState::log_ddl(const DdlRecord& record) {
  ATOLL_TRY(ddl_->append(record));
  // Relaxed: another thread may write a savepoint with a smaller count, which is valid, too.
  ddl_records_.store(ddl_->records().size(), std::memory_order_relaxed);
  const std::lock_guard guard(savepoint_mutex_);
  return record_in_savepoint(ddl_->records().size(), start_.savepoint.durable_epoch);
}

Result<void> DurableState::record_idle(uint64_t durable_epoch) {
  const std::lock_guard guard(savepoint_mutex_);
  if (durable_epoch <= start_.savepoint.durable_epoch) return {};
  return record_in_savepoint(start_.savepoint.ddl_records, durable_epoch);
}

Result<void> DurableState::record_in_savepoint(uint64_t ddl_records, uint64_t durable_epoch) {
  CHECK(durable_epoch >= start_.savepoint.durable_epoch);
  Savepoint next = start_.savepoint;
  next.ddl_records = ddl_records;
  next.durable_epoch = durable_epoch;
  ATOLL_TRY(write_savepoint(*files_, config_.cluster.data_dir, next));
  start_.savepoint.ddl_records = next.ddl_records;
  start_.savepoint.durable_epoch = next.durable_epoch;
  start_.savepoint.generation = next.generation;
  return {};
}

void DurableState::record_ddl_count() {
  start_.savepoint.ddl_records = ddl_records_.load(std::memory_order_relaxed);
}

Result<uint32_t> DurableState::take_snapshot_id() {
  const std::lock_guard guard(savepoint_mutex_);
  record_ddl_count();
  return atolldb::take_snapshot_id(*files_, config_.cluster.data_dir, start_.savepoint);
}

Result<void> DurableState::store_snapshot(const SnapshotMetadata& metadata) {
  const std::lock_guard guard(savepoint_mutex_);
  record_ddl_count();
  // Keeps no older snapshot in two cases. A salvage moves aside all files that it replaces. A
  // recovery in parts must make room (R54).
  CHECK(!has_begun_ || !salvage_);  // only a start-up salvages
  const bool is_part = !has_begun_ && metadata.epoch < start_.recovery_epoch;
  const uint32_t keep = salvage_ || is_part ? 1 : config_.snapshot.keep.get();
  if (is_part) remove_backup_pins(start_.savepoint);
  ATOLL_TRY(atolldb::store_snapshot(*files_, config_.cluster.data_dir, start_.savepoint,
                                    metadata.id, metadata.epoch, keep, may_forget_log()));
  if (fault::metadata_after_savepoint) {
    ATOLL_TRY(write_snapshot_metadata(*files_, config_.cluster.data_dir, metadata));
  }
  start_.snapshot = metadata;
  return has_begun_ ? Result<void>() : collect_streams(*files_, start_, run_);
}

Result<void> DurableState::store_checkpoint(const CheckpointMetadata& metadata) {
  CHECK(has_begun_ && metadata.replay_epoch <= metadata.end_epoch);
  const std::lock_guard guard(savepoint_mutex_);
  record_ddl_count();
  ATOLL_TRY(atolldb::store_checkpoint(*files_, config_.cluster.data_dir, start_.savepoint,
                                      static_cast<uint32_t>(metadata.id), metadata.replay_epoch,
                                      metadata.end_epoch, may_forget_log()));
  start_.checkpoint = metadata;
  return {};
}

size_t DurableState::listed_incarnations() {
  const std::lock_guard guard(savepoint_mutex_);
  return start_.savepoint.incarnations.size();
}

std::vector<PlannedStream> DurableState::live_streams(uint64_t epoch) const {
  CHECK(has_begun_);
  const Incarnation* running = start_.savepoint.uncut();
  CHECK(running != nullptr);
  std::vector<PlannedStream> streams;
  for (const LoggerPlace& place : running->loggers) {
    streams.push_back({stream_of(start_.savepoint, *running, place), epoch});
  }
  return streams;
}

Result<size_t> DurableState::delete_unneeded(const std::set<uint32_t>& in_use) {
  const std::lock_guard guard(savepoint_mutex_);
  const std::string& data_dir = config_.cluster.data_dir;
  ATOLL_ASSIGN(const auto deleted,
               atolldb::delete_unneeded(*files_, data_dir, start_.savepoint, directories_, in_use,
                                        salvage_, keep_log()));
  return deleted.size();
}

Result<Json> DurableState::report_salvage(Json found) {
  CHECK(salvage_);
  const std::string& data_dir = config_.cluster.data_dir;
  ATOLL_ASSIGN(const auto text, read_salvage_report(*files_, data_dir, *salvage_));
  Json earlier = Json::parse(text, nullptr, false);
  if (!earlier.is_object()) earlier = Json::object();
  Json report = merge_reports(earlier, std::move(found));
  report["schema_version"] = 1;
  report["data_dir"] = data_dir;
  ATOLL_TRY(write_salvage_report(*files_, data_dir, *salvage_,
                                 report.dump(2, ' ', false, Json::error_handler_t::replace)));
  return report;
}

Result<std::string> DurableState::end_salvage() {
  CHECK(salvage_);
  const std::string& data_dir = config_.cluster.data_dir;
  // First stores the new history of the archive. Without it the archive would contain given-up
  // commits followed by later ones.
  if (archive_ != nullptr) {
    ATOLL_TRY(archive_->store_pending());
  }
  ATOLL_TRY(atolldb::end_salvage(*files_, data_dir, *salvage_));
  const std::string path = salvage_report_path(data_dir, *salvage_);
  salvage_.reset();
  return path;
}

Result<PinnedSnapshot> DurableState::pin(uint32_t id, const std::string& name) {
  const std::lock_guard guard(savepoint_mutex_);
  ATOLL_ASSIGN(auto chosen, choose_pin(start_.savepoint, id, name));
  ATOLL_TRY(
      pin_snapshot(*files_, config_.cluster.data_dir, start_.savepoint, chosen.id, chosen.name));
  return chosen;
}

Result<PinnedSnapshot> DurableState::unpin(const std::string& name_or_id) {
  const std::lock_guard guard(savepoint_mutex_);
  ATOLL_ASSIGN(auto found, find_pin(start_.savepoint, name_or_id));
  ATOLL_TRY(unpin_snapshot(*files_, config_.cluster.data_dir, start_.savepoint, found.name));
  return found;
}

Result<size_t> DurableState::give_up_backup_pins() {
  const std::lock_guard guard(savepoint_mutex_);
  return atolldb::give_up_backup_pins(*files_, config_.cluster.data_dir, start_.savepoint);
}

Result<size_t> DurableState::remove(uint32_t id, const std::set<uint32_t>& in_use) {
  const std::lock_guard guard(savepoint_mutex_);
  const std::string& data_dir = config_.cluster.data_dir;
  ATOLL_ASSIGN(const auto removed,
               remove_snapshot(*files_, data_dir, start_.savepoint, directories_, in_use, id));
  return removed.size();
}

Result<void> DurableState::begin() {
  const std::lock_guard guard(savepoint_mutex_);
  // With checkpoints, the logs that were replayed are needed until the next checkpoint.
  CHECK(!has_begun_);
  CHECK(start_.streams_to_read.empty() || start_.savepoint.scheme == DurabilityScheme::silor);
  record_ddl_count();
  const Result<void> begun =
      begin_incarnation(*files_, config_.cluster.data_dir, start_, loggers_of(config_));
  has_begun_ = begun.has_value();
  if (has_begun_ && archive_ != nullptr) archive_->add(start_.savepoint);
  return begun;
}

Result<void> DurableState::end(uint64_t durable_epoch) {
  const std::lock_guard guard(savepoint_mutex_);
  if (!has_begun_) return {};
  record_ddl_count();
  return store_durable_epoch(*files_, config_.cluster.data_dir, start_, durable_epoch);
}

}  // namespace atolldb
