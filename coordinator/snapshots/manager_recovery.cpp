// Recovery: the gleaner turns the log after the newest snapshot into a further snapshot, and the
// cluster begins from it (R32, R36, R43). Meanwhile transactions may read the previous snapshot and
// the pinned ones, as in a running cluster. Recovery does not change these snapshots and makes no
// volatile page.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "coordinator/snapshots/log_volume.h"
#include "coordinator/snapshots/recovery_progress.h"
#include "coordinator/snapshots/recovery_steps.h"
#include "coordinator/snapshots/snapshot_manager.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"
#include "shared/config/job_threads.h"

namespace atolldb {

Result<void> SnapshotManager::recover(const OnRecovering& on_recovering) {
  CHECK(durable_ != nullptr && taker_ == nullptr && on_recovering);
  thread_ = std::this_thread::get_id();
  const bool salvages = durable_->salvages();
  if (!durable_->streams_to_read().empty() || (salvages && durable_->snapshot())) {
    on_recovering(begin_recovery());
    ATOLL_TRY(take_recovery_snapshots());
    // Relaxed: for display. The recovery may have been too short for record_recovery_progress.
    control_.recovered_percent.store(100, std::memory_order_relaxed);
  }
  if (durable_->snapshot()) {
    ATOLL_TRY(set_storage_roots(*durable_->snapshot()));
  }
  const Result<void> published = publish_and_delete();
  if (salvages) {
    // The salvage must end now, because every start-up omits damaged data while a salvage is in
    // progress. It ends even if the metadata of a pinned snapshot cannot be read. In that case all
    // files of snapshots are kept (R38), and the logs are moved aside.
    if (!published && published.error().code != ExitCode::corruption) return published;
    ATOLL_TRY(report_salvage());
  }
  return {};
}

/// Returns the data that this salvage attempt has omitted so far, for the report.
Json SnapshotManager::salvaged() const {
  Json found = {{"left_out", durable_->left_out()}, {"ranges", job_->unreadable()}};
  for (Json& range : found["ranges"]) {
    const StorageControl& storage = control_.storage(range.value("storage", 0u));
    range["name"] = storage.name;
  }
  return found;
}

/// Writes the data that the salvage has omitted to the process log and to the salvage report. Then
/// ends the salvage.
Result<void> SnapshotManager::report_salvage() {
  Json found = salvaged();
  found["snapshot"] = newest_.load(std::memory_order_relaxed);
  found["epoch"] = newest_epoch_.load(std::memory_order_relaxed);
  ATOLL_ASSIGN(const auto report, durable_->report_salvage(std::move(found)));
  for (const Json& range : report.at("ranges")) {
    logger_->error("salvage: storage {}: {} is missing: {}", range.value("name", ""),
                   range.value("range", ""), range.value("reason", ""));
  }
  ATOLL_ASSIGN(const auto path, durable_->end_salvage());
  job_->forget_unreadable();
  logger_->warn("salvage: {} ranges and {} parts of the log are missing: {}",
                report.at("ranges").size(), report.at("left_out").size(), path);
  return {};
}

std::string SnapshotManager::begin_recovery() {
  // Relaxed: for display.
  recovery_began_ns_.store(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count(),
      std::memory_order_relaxed);
  bytes_to_recover_.store(log_volume(durable_->files(), durable_->streams_to_read()),
                          std::memory_order_relaxed);
  if (!durable_->snapshot()) return "";
  const SnapshotMetadata& newest = *durable_->snapshot();
  if (const auto published = publish_to_transactions(); !published) {
    logger_->warn("no snapshot can be read before the end of the recovery: {}",
                  published.error().message);
    // Some node may have published the snapshot, so all nodes are asked to withdraw it. The answer
    // is ignored, because the recovery fails anyway if a node does not answer its later requests.
    make_newest(0);
    [[maybe_unused]] const auto withdrawn = withdraw_on_nodes({});
    offered_.clear();
    return "";
  }
  record_newest(newest);
  Json readable = {{"snapshot", newest.id}, {"epoch", newest.epoch}, {"others", Json::array()}};
  for (const auto& [id, offer] : offered_) {
    if (id != newest.id) readable["others"].push_back(id);
  }
  const std::string text =
      "snapshot " + std::to_string(newest.id) + " of epoch " + std::to_string(newest.epoch);
  logger_->info("recovery: transactions may read {} already", text);
  const std::lock_guard guard(mutex_);
  readable_ = std::move(readable);
  return text;
}

RecoveryCounts SnapshotManager::recovery_counts() const {
  // Relaxed, for all words: they are for display.
  const auto add = [](uint64_t& sum, const std::atomic<uint64_t>& word) {
    sum += word.load(std::memory_order_relaxed);
  };
  RecoveryCounts counts;
  counts.log_bytes = bytes_to_recover_.load(std::memory_order_relaxed);
  for (const MetricsSegment* metrics : metrics_) {
    add(counts.bytes_read, metrics->gleaner.bytes_read);
    add(counts.records_received, metrics->gleaner.records_received);
    add(counts.records_composed, metrics->gleaner.records_composed);
    add(counts.records_composed, metrics->gleaner.records_elided);
  }
  return counts;
}

std::chrono::nanoseconds SnapshotManager::recovery_time() const {
  const int64_t began = recovery_began_ns_.load(std::memory_order_relaxed);
  if (began == 0) return std::chrono::nanoseconds(0);
  return std::chrono::steady_clock::now().time_since_epoch() - std::chrono::nanoseconds(began);
}

void SnapshotManager::record_recovery_progress() {
  const RecoveryCounts counts = recovery_counts();
  const uint64_t percent =
      counts.log_bytes == 0 ? 0
                            : std::min<uint64_t>(100, counts.bytes_read * 100 / counts.log_bytes);
  control_.recovered_percent.store(static_cast<uint32_t>(percent), std::memory_order_relaxed);
  const std::chrono::nanoseconds time = recovery_time();
  {
    const std::lock_guard guard(mutex_);
    if (time < recovery_reported_ + kRecoveryReportPause) return;
    recovery_reported_ = time;
  }
  logger_->info("recovery: {}", recovery_text(counts, time));
}

std::string SnapshotManager::recovery_progress() const {
  const RecoveryCounts counts = recovery_counts();
  if (counts.bytes_read < counts.log_bytes) {
    return fmt::format("recovering {} {} reading the logs", counts.bytes_read, counts.log_bytes);
  }
  uint64_t pages = 0;
  for (const MetricsSegment* metrics : metrics_) {
    pages += metrics->gleaner.pages_written.load(std::memory_order_relaxed);
  }
  return fmt::format("recovering {} 0 writing pages of the new snapshot", pages * kPageBytes);
}

Json SnapshotManager::recovery_status() const {
  const RecoveryCounts counts = recovery_counts();
  const auto eta = recovery_eta_seconds(counts, recovery_time());
  const std::lock_guard guard(mutex_);
  // Relaxed: for display.
  return {{"log_bytes", counts.log_bytes},
          {"percent_read", control_.recovered_percent.load(std::memory_order_relaxed)},
          {"percent", static_cast<uint32_t>(100 * recovered_share(counts))},
          {"eta_seconds", eta ? Json(*eta) : Json()},
          {"reads", readable_}};
}

/// Makes one snapshot of all the log that no snapshot covers, if there is room for it. Without
/// enough room, makes several snapshots, each of a further part of the epochs. The deletion of the
/// logs that one snapshot covers makes room for the next one (R54).
Result<void> SnapshotManager::take_recovery_snapshots() {
  RecoverySteps steps(durable_->recovery_epoch());
  for (;;) {
    const uint64_t recovered = recovered_epoch();
    const auto taken = take_recovery_snapshot(steps.epoch());
    if (taken && steps.is_last()) return {};
    if (!taken) {
      if (taken.error().code != ExitCode::disk_full) return taken;
      ATOLL_ASSIGN(const auto released, durable_->release_ballast());
      if (released) {
        logger_->warn("recovery: {}; the ballast is given up for it", taken.error().message);
        continue;
      }
      // A salvage frees no files until it is complete, so parts would only take more room.
      if (durable_->salvages() || !steps.shrink(recovered)) return taken;
      logger_->warn("recovery: {}: trying a snapshot up to epoch {} only", taken.error().message,
                    steps.epoch());
      continue;
    }
    // Closes the files of the new snapshot, because transactions may not read it before the end of
    // the recovery.
    ATOLL_TRY(open_readable());
    const auto deleted = durable_->delete_unneeded(ids_in_use());
    durable_->files().finish_removals();  // the nodes need the room for the next part
    if (deleted) {
      logger_->info("recovery: {} files that the snapshot covers are deleted", *deleted);
    } else if (deleted.error().code == ExitCode::corruption) {
      // Metadata of a snapshot cannot be read, so no file was deleted. The recovery continues,
      // although these files still take room.
      logger_->warn("recovery: obsolete files remain: {}", deleted.error().message);
    } else {
      return std::unexpected(deleted.error());
    }
    steps.advance(recovered, recovered_epoch());
  }
}

Result<void> SnapshotManager::take_recovery_snapshot(uint64_t epoch) {
  std::vector<PlannedStream> streams = streams_up_to(durable_->streams_to_read(), epoch);
  uint32_t mappers = 0;
  uint32_t reducers = 0;
  for (const NodeConfig& node : config_.nodes) {
    mappers += recovery_threads(node).mappers;
    reducers += recovery_threads(node).reducers;
  }
  logger_->info(
      "recovery: making a snapshot of {} logs up to epoch {}, with {} mappers and {} "
      "reducers at most",
      streams.size(), epoch, mappers, reducers);
  // An ordinary recovery has no victims, because the start waits for it, and the disk may lack
  // room. It reserves no disk space either: the cluster cannot start without this snapshot, and the
  // deletion of the logs that it covers makes room. A salvage copies all pages of the base that can
  // be read.
  std::vector<uint32_t> victims;
  if (durable_->salvages() && durable_->snapshot()) {
    victims = snapshots_of(durable_->snapshot()->files);
  }
  Job job;
  job.task = {.epoch = epoch,
              .streams = std::move(streams),
              .storages = catalog_.entries(),
              .victims = std::move(victims),
              .salvages = durable_->salvages()};
  return make_snapshot(job);
}

uint64_t SnapshotManager::recovered_epoch() const {
  std::optional<uint64_t> snapshot_epoch;
  if (durable_->snapshot()) snapshot_epoch = durable_->snapshot()->epoch;
  return atolldb::recovered_epoch(durable_->streams_to_read(), snapshot_epoch,
                                  durable_->recovery_epoch());
}

/// Opens the files of this snapshot on all nodes, then sets the roots of all storages to it.
/// REQUIRES: no transaction reads the root of a storage yet. Transactions that read a snapshot use
/// its own roots.
Result<void> SnapshotManager::set_storage_roots(const SnapshotMetadata& snapshot) {
  ATOLL_TRY(open_readable(snapshot.files));
  for (const SnapshotStorage& stored : snapshot.storages) {
    StorageControl& storage = control_.storage(stored.id);
    const auto state = static_cast<StorageState>(storage.state.load(std::memory_order_relaxed));
    // Skips a storage that was dropped after the snapshot was made.
    if (storage.id != stored.id || state != StorageState::ready) continue;
    // Relaxed: the release of the state `running` publishes both words.
    storage.root.snapshot_word.store(stored.root.is_null() ? 0 : stored.root.word(),
                                     std::memory_order_relaxed);
    // R43 (newest removed version): all versions that the snapshot elides, erased keys included,
    // are of its epoch or older.
    storage.root_max_removed_vid.store(Vid::make(snapshot.epoch, 0).word(),
                                       std::memory_order_relaxed);
  }
  kept_.add(snapshot);
  record_newest(snapshot);
  logger_->info("snapshot {} of epoch {}: {} storages, {} files", snapshot.id, snapshot.epoch,
                snapshot.storages.size(), snapshot.files.size());
  return {};
}

}  // namespace atolldb
