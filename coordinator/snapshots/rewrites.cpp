#include "coordinator/snapshots/rewrites.h"

#include <algorithm>
#include <set>
#include <string>

#include "coordinator/durability/disk_room.h"
#include "coordinator/snapshots/rewrite_policy.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/base/try.h"
#include "shared/file/file_system_wrappers.h"

namespace atolldb {
namespace {

/// Returns the storages of a snapshot. Those of old versions have no counts of records, except of
/// sequential storages.
std::vector<StorageSpace> storage_spaces_of(const SnapshotMetadata& snapshot) {
  std::vector<StorageSpace> spaces;
  for (const SnapshotStorage& storage : snapshot.storages) {
    StorageSpace space{.id = storage.id};
    if (storage.type == StorageType::sequential) space.records = storage.records;
    spaces.push_back(space);
  }
  for (const RecordCount& count : snapshot.record_counts) {
    const auto space = std::ranges::lower_bound(spaces, count.storage_id, {}, &StorageSpace::id);
    CHECK(space != spaces.end() && space->id == count.storage_id);
    space->records = count.records;
    space->is_estimate = count.is_estimate;
  }
  for (const LivePages& live : snapshot.live) {
    const auto space = std::ranges::lower_bound(spaces, live.storage_id, {}, &StorageSpace::id);
    // A dropped storage may still have pages in the files.
    if (space != spaces.end() && space->id == live.storage_id) space->pages += live.all();
  }
  return spaces;
}

}  // namespace

Result<uint64_t> room_beside_reserve(const Config& config) {
  const std::vector<std::string> of_nodes = node_directories(config);
  std::set<std::string> directories(of_nodes.begin(), of_nodes.end());
  directories.insert(config.cluster.data_dir);
  uint64_t least = UINT64_MAX;
  for (const std::string& directory : directories) {
    ATOLL_ASSIGN(const uint64_t free, free_bytes_at(directory));
    least = std::min(least, free - std::min(free, disk_reserve(config, directory)));
  }
  return least;
}

Rewrites::Rewrites(const Config::Gleaner& config, SnapshotMetrics& metrics, Logger logger,
                   Room room)
    : config_(config), metrics_(metrics), logger_(std::move(logger)), room_(std::move(room)) {
  CHECK(room_ != nullptr);
  // Relaxed, here and below, because these words are metrics.
  metrics_.target_space_percent.store(config_.space_percent, std::memory_order_relaxed);
}

std::vector<uint32_t> Rewrites::choose(const SnapshotMetadata& newest, const Urgency& urgency) {
  pages_to_copy_ = 0;
  metrics_.target_space_percent.store(config_.space_percent, std::memory_order_relaxed);
  if (urgency.lacks_log_files) return {};
  urgent_count_ = urgency.pool_is_low ? urgent_count_ + 1 : 0;
  const bool is_due = urgent_count_ >= kUrgentSnapshots || is_much_too_large(newest);
  if (urgency.pool_is_low && !is_due) return {};
  urgent_count_ = 0;
  if (pause_ != 0) {
    --pause_;
    return {};
  }
  const auto room = room_();
  if (!room) {
    logger_->warn("no files of snapshots are rewritten: {}", room.error().message);
    return {};
  }
  const RewriteLimits limits = {
      .space_percent = config_.space_percent,
      .pages = std::max(config_.rewrite_limit / kPageBytes, written_last_ / kCopiedPart),
      .room_pages = (*room - std::min(*room, kRewriteMargin)) / kPageBytes,
      .coming_pages = new_pages_};
  const RewriteChoice choice = choose_victims(space_of(newest), limits);
  CHECK(choice.pages <= limits.room_pages);
  record_room(choice.lacks_room);
  pages_to_copy_ = choice.pages;
  if (!choice.victims.empty()) {
    logger_->info(
        "the next snapshot copies {} live pages of {} older ones, so that their files "
        "can be deleted",
        choice.pages, choice.victims.size());
  }
  return choice.victims;
}

bool Rewrites::is_much_too_large(const SnapshotMetadata& newest) const {
  const SpaceSums sums = sums_of(space_of(newest));
  return sums.amplification_percent() * 100 > config_.space_percent * kTooLargePercent;
}

/// Warns once when rewrites begin to lack room, and logs when they have room again.
void Rewrites::record_room(bool lacks_room) {
  const bool lacked_room = metrics_.lacks_room.exchange(lacks_room, std::memory_order_relaxed);
  if (lacks_room && !lacked_room) {
    logger_->warn(
        "the files of snapshots have much garbage, but there is no room to copy the live pages of "
        "any: free disk space, or lower gleaner.disk_reserve");
  }
  if (!lacks_room && lacked_room)
    logger_->info("there is room to rewrite files of snapshots again");
}

void Rewrites::record(const std::vector<uint32_t>& victims, const SnapshotMetadata* made) {
  if (made != nullptr) record_new_pages(*made, victims.empty() ? 0 : pages_to_copy_);
  if (victims.empty()) return;
  if (made == nullptr) {
    pause_ = kSnapshotsAfterFailure;
    return;
  }
  const std::vector<uint32_t> left = snapshots_of(made->files);
  const bool is_needed = std::ranges::any_of(
      victims, [&](uint32_t victim) { return std::ranges::binary_search(left, victim); });
  if (is_needed) {
    pause_ = damage_pause_;
    damage_pause_ = std::min(2 * damage_pause_, kMostSnapshotsAfterDamage);
    logger_->warn(
        "{} live pages were copied, but the files that had them are still needed, because a page "
        "cannot be read: files are rewritten again after {} snapshots or a restart: "
        "`atoll snapshot verify` finds the page",
        pages_to_copy_, pause_);
  } else {
    damage_pause_ = kSnapshotsAfterDamage;
    metrics_.pages_rewritten.add(pages_to_copy_);
  }
}

void Rewrites::record_new_pages(const SnapshotMetadata& made, uint64_t copied) {
  uint64_t written = 0;
  for (const SnapshotSpace& each : space_of(made)) {
    if (each.snapshot == made.id) written = each.stored_pages;
  }
  written_last_ = written - std::min(written, copied);
  new_pages_ = std::max(written_last_, new_pages_ - new_pages_ / 8);
}

void Rewrites::record_space(const SnapshotMetadata& newest) {
  const SpaceSums sums = sums_of(space_of(newest));
  metrics_.pages_live.store(sums.live_pages, std::memory_order_relaxed);
  metrics_.space_percent.store(sums.amplification_percent(), std::memory_order_relaxed);
  metrics_.storages.set(storage_spaces_of(newest));
}

Json Rewrites::status() const {
  const auto get = [](const auto& word) { return word.load(std::memory_order_relaxed); };
  return {{"stored_bytes", get(metrics_.pages_stored) * kPageBytes},
          {"live_bytes", get(metrics_.pages_live) * kPageBytes},
          {"percent", get(metrics_.space_percent)},
          {"target_percent", get(metrics_.target_space_percent)},
          {"lacks_room", get(metrics_.lacks_room)},
          {"rewritten_bytes", metrics_.pages_rewritten.get() * kPageBytes}};
}

}  // namespace atolldb
