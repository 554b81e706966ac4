#include "coordinator/durability/durable_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/discard_data.h"
#include "engine/log/log_owner.h"
#include "engine/log/savepoint_snapshots.h"
#include "engine/snapshot/retention.h"
#include "engine/snapshot/stored_snapshots.h"
#include "shared/check.h"

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

}  // namespace

Result<std::unique_ptr<DurableState>> DurableState::open(const Config& config, uint64_t incarnation,
                                                         const Logger& logger) {
  const auto warn = [logger](const std::string& text) { logger->warn("{}", text); };
  auto files = make_file_system(file_system_settings(config.durability, warn));
  return open(config, incarnation, std::move(files), logger);
}

Result<std::unique_ptr<DurableState>> DurableState::open(const Config& config, uint64_t incarnation,
                                                         std::unique_ptr<FileSystem> file_system,
                                                         const Logger& logger) {
  std::unique_ptr<DurableState> state(new DurableState(config, std::move(file_system)));
  const std::string& data_dir = config.cluster.data_dir;
  FileSystem& files = *state->files_;
  Result<LogStart> start = examine(files, data_dir, node_directories(config));
  if (!start) return std::unexpected(start.error());
  if (!start->damaged_slot.empty()) {
    logger->warn("one of two copies of the savepoint does not count: {}", start->damaged_slot);
  }
  start->incarnation = std::max(start->incarnation, incarnation);
  start->start_epoch = std::max(start->start_epoch, config.cluster.start_epoch);
  state->start_ = *std::move(start);
  // Before incarnations leave the savepoint.
  state->directories_ = state->all_directories();
  if (const auto stored = store_cut(files, data_dir, state->start_); !stored) {
    return std::unexpected(stored.error());
  }
  Result<DdlLog> ddl = DdlLog::open(files, data_dir, state->data_uuid());
  if (!ddl) return std::unexpected(ddl.error());
  if (!ddl->torn().empty()) logger->warn("a torn record of DDL does not count: {}", ddl->torn());
  state->ddl_.emplace(*std::move(ddl));
  state->ddl_records_.store(state->ddl_->records().size(), std::memory_order_relaxed);
  return state;
}

/// Those of pinned snapshots whose metadata cannot be read are left out: nothing is deleted then.
std::set<std::string> DurableState::all_directories() const {
  const Savepoint& savepoint = start_.savepoint;
  std::set<std::string> all =
      log_directories(savepoint, config_.cluster.data_dir, node_directories(config_));
  const auto add = [&](const SnapshotMetadata& metadata) {
    for (const SnapshotFilePlace& file : metadata.files) all.insert(file.directory);
  };
  if (start_.snapshot) add(*start_.snapshot);
  for (const PinnedSnapshot& pin : savepoint.pinned) {
    const auto metadata = read_snapshot_metadata(*files_, config_.cluster.data_dir, pin.id);
    if (metadata) add(*metadata);
  }
  return all;
}

Result<std::map<std::string, size_t>> DurableState::left_directories() {
  std::map<std::string, size_t> left;
  for (const std::string& directory : directories_) left[directory] = 0;
  left.erase(config_.cluster.data_dir);
  for (const std::string& directory : node_directories(config_)) left.erase(directory);
  if (left.empty()) return left;
  const ClusterUuid& own = start_.savepoint.cluster_uuid;
  auto logs = log_files_in(*files_, directories_);
  if (!logs) return std::unexpected(logs.error());
  for (const LogFilePlace& place : *logs) {
    const auto found = left.find(place.directory);
    if (found == left.end()) continue;
    const auto foreign = is_foreign(*files_, place, own);
    if (!foreign) return std::unexpected(foreign.error());
    if (!*foreign) ++found->second;
  }
  auto snapshots = snapshot_files_in(*files_, config_.cluster.data_dir, directories_);
  if (!snapshots) return std::unexpected(snapshots.error());
  for (const StoredSnapshotFile& file : *snapshots) {
    const auto found = left.find(file.directory);
    if (found == left.end()) continue;
    const auto foreign = is_foreign(*files_, file, own);
    if (!foreign) return std::unexpected(foreign.error());
    if (!*foreign) ++found->second;
  }
  return left;
}

Result<void> DurableState::log_ddl(const DdlRecord& record) {
  auto logged = ddl_->append(record);
  // Relaxed: a savepoint that says less is right, too.
  if (logged) ddl_records_.store(ddl_->records().size(), std::memory_order_relaxed);
  return logged;
}

void DurableState::note_ddl() {
  start_.savepoint.ddl_records = ddl_records_.load(std::memory_order_relaxed);
}

Result<uint32_t> DurableState::take_snapshot_id() {
  note_ddl();
  return atolldb::take_snapshot_id(*files_, config_.cluster.data_dir, start_.savepoint);
}

Result<void> DurableState::store_snapshot(const SnapshotMetadata& metadata) {
  note_ddl();
  const Result<void> stored = atolldb::store_snapshot(
      *files_, config_.cluster.data_dir, start_.savepoint, metadata.id, metadata.epoch);
  if (!stored) return stored;
  start_.snapshot = metadata;
  start_.to_glean.clear();
  return {};
}

std::vector<GleanStream> DurableState::live_streams(uint64_t epoch) const {
  const Incarnation* running = start_.savepoint.uncut();
  CHECK(running != nullptr);
  std::vector<GleanStream> streams;
  for (const LoggerPlace& place : running->loggers) {
    streams.push_back({stream_of(start_.savepoint, *running, place), epoch});
  }
  return streams;
}

Result<size_t> DurableState::delete_unneeded(const std::set<uint32_t>& in_use) {
  const std::string& data_dir = config_.cluster.data_dir;
  const auto deleted =
      atolldb::delete_unneeded(*files_, data_dir, start_.savepoint, directories_, in_use);
  if (!deleted) return std::unexpected(deleted.error());
  return deleted->size();
}

Result<PinnedSnapshot> DurableState::pin(uint32_t id, const std::string& name) {
  auto chosen = choose_pin(start_.savepoint, id, name);
  if (!chosen) return chosen;
  const auto pinned =
      pin_snapshot(*files_, config_.cluster.data_dir, start_.savepoint, chosen->id, chosen->name);
  if (!pinned) return std::unexpected(pinned.error());
  return chosen;
}

Result<PinnedSnapshot> DurableState::unpin(const std::string& name_or_id) {
  auto found = find_pin(start_.savepoint, name_or_id);
  if (!found) return found;
  const auto unpinned =
      unpin_snapshot(*files_, config_.cluster.data_dir, start_.savepoint, found->name);
  if (!unpinned) return std::unexpected(unpinned.error());
  return found;
}

Result<size_t> DurableState::remove(uint32_t id, const std::set<uint32_t>& in_use) {
  const std::string& data_dir = config_.cluster.data_dir;
  const auto removed =
      remove_snapshot(*files_, data_dir, start_.savepoint, directories_, in_use, id);
  if (!removed) return std::unexpected(removed.error());
  return removed->size();
}

Result<void> DurableState::begin() {
  CHECK(start_.to_glean.empty());
  note_ddl();
  const Result<void> begun =
      begin_incarnation(*files_, config_.cluster.data_dir, start_, loggers_of(config_));
  has_begun_ = begun.has_value();
  return begun;
}

Result<void> DurableState::end(uint64_t durable_epoch) {
  if (!has_begun_) return {};
  note_ddl();
  return store_durable_epoch(*files_, config_.cluster.data_dir, start_, durable_epoch);
}

}  // namespace atolldb
