// The node's parts for snapshots: the cache of their pages, the installer, the scrubber, the
// snapshot jobs, and their gauges.
#include <algorithm>
#include <memory>
#include <utility>

#include "engine/gleaner/sorted_run.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/config/job_threads.h"
#include "soc/node/node.h"
#include "soc/node/node_segments.h"

namespace atolldb {
namespace {

/// Publishes the counts of the cache by storage that have changed. Dropped storages without a slot
/// are omitted.
void publish_storage_counts(std::span<const StorageCount> changed, MetricsSegment& metrics) {
  for (const StorageCount& count : changed) {
    CHECK(count.storage_id != 0);
    StorageCacheMetrics& published = metrics.storage_caches[count.storage_id % kMaxStorages];
    published.pages.store(count.cached(), std::memory_order_relaxed);
    published.pages_read.store(count.pages_read, std::memory_order_relaxed);
    published.evictions.store(count.evictions, std::memory_order_relaxed);
    // Release pairs with the acquire in storage_cache_counts: if the slot changes its storage, its
    // counts have changed before.
    published.storage_id.store(count.storage_id, std::memory_order_release);
  }
}

}  // namespace

Result<void> Node::start_snapshots() {
  CHECK(snapshots_ == nullptr);
  if (files_ == nullptr) return {};
  ClusterUuid cluster_uuid = {};
  std::ranges::copy(view_.control->data_uuid, cluster_uuid.begin());
  start_scrub(cluster_uuid);
  if (config_.durability.scheme == DurabilityScheme::silor) return {};
  SnapshotStoreSettings settings;
  settings.file_system = files_.get();
  settings.shared = view_.shared[node_];
  settings.newest = &view_.control->readable_snapshot;
  settings.cluster_uuid = cluster_uuid;
  settings.cache_bytes = config_.memory.snapshot_cache;
  settings.reader_count = view_.shared[node_]->slot_count;
  settings.transparent_huge = config_.memory.huge_pages != HugePages::off;
  settings.numa_node = numa_node_of(config_, node_, machine_);
  if (config_.memory.lend_pool) settings.lender = pool_.get();
  ATOLL_ASSIGN(snapshots_, SnapshotStore::create(settings, logger_));
  if (settings.lender != nullptr) {
    lent_pages_ = std::make_unique<LentPageReturner>(*settings.lender, snapshots_->cache());
  }
  start_installer();
  start_warming(cluster_uuid);
  return start_snapshot_jobs();
}

void Node::start_installer() {
  PageVisitorSettings visitor;
  visitor.view = &view_;
  visitor.pool = pool_.get();
  visitor.snapshots = &snapshots_->cache();
  visitor.node = node_;
  visitor.write_set = config_.memory.write_set;
  InstallerSettings settings;
  settings.view = &view_;
  settings.cpus = config_.nodes[node_].gleaner_cpus;
  settings.times = &metrics_->gleaner.times;
  const uint32_t installers = config_.nodes[node_].installers;
  CHECK(installers >= 1 && installers <= kMaxInstallers);
  // Composers have the last visitor, so that a capture does not wait for the thread `install`. If
  // there are kMaxInstallers installers, it is the one of the last installer.
  const uint32_t visitors = std::min(installers + 1, kMaxInstallers);
  for (uint32_t i = 0; i < visitors; ++i) {
    visitor.slot =
        config_.nodes[node_].workers + 1 + i;  // the housekeeper has the slot before these
    visitor.metrics = &metrics_->worker(visitor.slot);
    visitor.keeps_reserve = i == 0 || i + 1 == visitors;
    visitors_.push_back(std::make_unique<PageVisitor>(visitor));
    if (i < installers) settings.visitors.push_back(visitors_.back().get());
  }
  settings.composers = visitors_.back().get();
  static_assert(kAuxiliarySlots == 1 + kMaxInstallers);
  installer_ = std::make_unique<Installer>(std::move(settings), logger_);
  installer_->start();
}

void Node::start_scrub(const ClusterUuid& cluster_uuid) {
  ScrubberSettings settings;
  settings.file_system = files_.get();
  settings.cluster_uuid = cluster_uuid;
  settings.node = node_;
  settings.bytes_per_s = config_.snapshot.scrub_rate;
  settings.pause = config_.snapshot.scrub_interval;
  settings.log_directories = node_directories(config_);
  settings.log_directories.push_back(config_.cluster.data_dir);
  if (config_.durability.scheme == DurabilityScheme::silor) {
    settings.checkpoint_data_dir = config_.cluster.data_dir;
  }
  scrubber_ = std::make_unique<Scrubber>(std::move(settings), logger_);
  scrubber_->start();
}

void Node::start_warming(const ClusterUuid& cluster_uuid) {
  // Without a savepoint there are no snapshots.
  if (!config_.snapshot.warm_cache || config_.durability.mode != DurabilityMode::durable) return;
  CacheWarmerSettings settings;
  settings.file_system = files_.get();
  settings.cache = &snapshots_->cache();
  settings.cluster_uuid = cluster_uuid;
  settings.directory = log_directory(config_, node_, 0);
  settings.node = node_;
  warmer_ = std::make_unique<CacheWarmer>(std::move(settings), logger_);
  warmer_->start();
}

Result<void> Node::start_snapshot_jobs() {
  const auto directories = static_cast<uint32_t>(config_.nodes[node_].directories.size());
  for (uint32_t i = 0; i < std::max(directories, 1u); ++i) {
    ATOLL_TRY(remove_sorted_runs(*files_, log_directory(config_, node_, i), node_));
  }
  SnapshotJobResources resources;
  resources.node = node_;
  resources.file_system = files_.get();
  resources.snapshots = &snapshots_->files();
  resources.cache = &snapshots_->cache();
  // Successive snapshots use the node's directories round robin, as its loggers do.
  resources.directory = [this](uint32_t snapshot) {
    return log_directory(config_, node_, snapshot);
  };
  resources.inbox = [this](const ReducerPlace& place) -> std::byte* {
    const bool is_there =
        place.node < exchange_.size() && place.reducer < inbox_count(config_.nodes[place.node]);
    return is_there ? exchange_[place.node] + inbox_offset(config_, place.reducer) : nullptr;
  };
  // There are no volatile pages, and so no fence maps, before the state `running`. Acquire pairs
  // with the coordinator's release of the state.
  resources.fence_maps = [this]() -> FenceMapSource* {
    const auto state = view_.control->state.load(std::memory_order_acquire);
    return state < static_cast<uint32_t>(ClusterState::running) ? nullptr : visitors_.back().get();
  };
  resources.has_failed = [this] {
    return view_.control->state.load(std::memory_order_relaxed) >= kClusterFailedFrom;
  };
  resources.cpus = config_.nodes[node_].gleaner_cpus;
  resources.times = &metrics_->gleaner.times;
  snapshot_jobs_ = std::make_unique<SnapshotJobService>(std::move(resources), logger_);
  return {};
}

/// Publishes the gauges of the cache, of snapshot jobs and of the scrub. REQUIRES: the state of the
/// node is `running` or later.
void Node::publish_snapshot_metrics() {
  if (scrubber_ == nullptr) return;
  // Relaxed: for display; each figure is valid on its own.
  const auto put = [](std::atomic<uint64_t>& word, uint64_t value) {
    word.store(value, std::memory_order_relaxed);
  };
  GleanerMetrics& gleaner = metrics_->gleaner;
  const ScrubProgress scrub = scrubber_->progress();
  put(gleaner.scrubbed_bytes, scrub.bytes_read);
  put(gleaner.scrub_damaged, scrub.damaged);
  put(gleaner.scrub_percent, scrub.percent);
  put(gleaner.scrub_finished_s, scrub.finished_at_s);
  if (snapshot_jobs_ == nullptr) return;
  SnapshotCacheMetrics& cache = metrics_->snapshot_cache;
  const SnapshotCache::Statistics statistics = snapshots_->cache().statistics();
  put(cache.frames, statistics.frames);
  put(cache.frames_in_use, statistics.frames_in_use);
  put(cache.lent_frames, statistics.lent_frames);
  put(cache.misses, statistics.misses);
  put(cache.evictions, statistics.evictions);
  put(cache.ghost_hits, statistics.ghost_hits);
  publish_storage_counts(snapshots_->cache().take_changed_counts(), *metrics_);
  const WarmProgress warm = warmer_ == nullptr ? WarmProgress{} : warmer_->progress();
  put(cache.pages_to_warm, warm.to_warm);
  put(cache.pages_warmed, warm.warmed);
  const SnapshotJobProgress total = snapshot_jobs_->total();
  put(gleaner.phase, static_cast<uint64_t>(snapshot_jobs_->phase()));
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) {
    put(gleaner.*each.total, total.*each.progress);
  }
}

}  // namespace atolldb
