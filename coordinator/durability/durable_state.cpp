#include "coordinator/durability/durable_state.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/savepoint_snapshots.h"
#include "engine/snapshot/retention.h"
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

DurableState::DurableState(const Config& config, const Logger& logger)
    : config_(config),
      files_(make_file_system(file_system_settings(
          config.durability, [logger](const std::string& text) { logger->warn("{}", text); }))) {}

Result<std::unique_ptr<DurableState>> DurableState::open(const Config& config, uint64_t incarnation,
                                                         const Logger& logger) {
  std::unique_ptr<DurableState> state(new DurableState(config, logger));
  const std::string& data_dir = config.cluster.data_dir;
  FileSystem& files = *state->files_;
  Result<LogStart> start = examine(files, data_dir, node_directories(config));
  if (!start) return std::unexpected(start.error());
  if (!start->damaged_slot.empty()) {
    logger->warn("one of two copies of the savepoint does not count: {}", start->damaged_slot);
  }
  start->incarnation = std::max(start->incarnation, incarnation);
  start->start_epoch = std::max(start->start_epoch, config.cluster.start_epoch);
  if (const auto stored = store_cut(files, data_dir, *start); !stored) {
    return std::unexpected(stored.error());
  }
  Result<DdlLog> ddl = DdlLog::open(files, data_dir, start->savepoint.cluster_uuid);
  if (!ddl) return std::unexpected(ddl.error());
  if (!ddl->torn().empty()) logger->warn("a torn record of DDL does not count: {}", ddl->torn());
  state->start_ = *std::move(start);
  state->ddl_.emplace(*std::move(ddl));
  return state;
}

Result<uint32_t> DurableState::take_snapshot_id() {
  return atolldb::take_snapshot_id(*files_, config_.cluster.data_dir, start_.savepoint);
}

Result<void> DurableState::store_snapshot(const SnapshotMetadata& metadata) {
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
  const auto deleted = atolldb::delete_unneeded(
      *files_, data_dir, start_.savepoint,
      log_directories(start_.savepoint, data_dir, node_directories(config_)), in_use);
  if (!deleted) return std::unexpected(deleted.error());
  return deleted->size();
}

Result<void> DurableState::begin() {
  CHECK(start_.to_glean.empty());
  const Result<void> begun =
      begin_incarnation(*files_, config_.cluster.data_dir, start_, loggers_of(config_));
  has_begun_ = begun.has_value();
  return begun;
}

Result<void> DurableState::end(uint64_t durable_epoch) {
  if (!has_begun_) return {};
  return store_durable_epoch(*files_, config_.cluster.data_dir, start_, durable_epoch);
}

}  // namespace atolldb
