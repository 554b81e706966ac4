#include "shared/metrics/gleaner_families.h"

#include <cstring>
#include <map>
#include <string>

#include "shared/base/check.h"
#include "shared/memory/page_header.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {
namespace {

// Relaxed: for display only.
uint64_t value(const std::atomic<uint64_t>& word) { return word.load(std::memory_order_relaxed); }

struct GleanerCounter {
  const char* name;
  const char* help;
  std::atomic<uint64_t> GleanerMetrics::* counter;
  double unit;  // converts the counter to the unit in the metric's name
};
constexpr Metric<NodeCheckpointMetrics> kNodeCheckpointMetrics[] = {
    {"atoll_checkpoint_read_pages_total", "Pages read for checkpoints.",
     field<&NodeCheckpointMetrics::pages>},
    {"atoll_checkpoint_copied_records_total", "Records copied to files of checkpoints.",
     field<&NodeCheckpointMetrics::records>},
    {"atoll_checkpoint_skipped_records_total",
     "Records that checkpoints skipped, because the log has them.",
     field<&NodeCheckpointMetrics::skipped>},
    {"atoll_checkpoint_written_bytes_total", "Bytes written to files of checkpoints.",
     field<&NodeCheckpointMetrics::bytes>},
    {"atoll_checkpoint_syncs_total", "Syncs of files of checkpoints.",
     field<&NodeCheckpointMetrics::syncs>},
    {"atoll_replay_read_bytes_total", "Bytes of checkpoint and log read by replays.",
     field<&NodeCheckpointMetrics::replayed_bytes>},
    {"atoll_replay_inserted_records_total", "Replayed records that were new.",
     field<&NodeCheckpointMetrics::replayed_inserted>},
    {"atoll_replay_overwritten_records_total", "Replayed records that replaced older versions.",
     field<&NodeCheckpointMetrics::replayed_overwritten>},
    {"atoll_replay_older_records_total",
     "Replayed records that were skipped, because newer versions were there.",
     field<&NodeCheckpointMetrics::replayed_older>},
    {"atoll_replay_updates_total", "Updates of parts of records that replays applied at their end.",
     field<&NodeCheckpointMetrics::replayed_updates>},
};

constexpr GleanerCounter kGleanerCounters[] = {
    {"atoll_mapper_read_bytes_total", "Bytes of log files read by mappers.",
     &GleanerMetrics::bytes_read, 1},
    {"atoll_mapper_read_records_total", "Log records of snapshots' epochs read by mappers.",
     &GleanerMetrics::records_read, 1},
    {"atoll_mapper_shipped_records_total",
     "Log records that mappers sent to reducers, without superseded ones.",
     &GleanerMetrics::records_shipped, 1},
    {"atoll_mapper_captured_records_total",
     "Log records that mappers left out, because captured pages hold their content.",
     &GleanerMetrics::records_captured, 1},
    {"atoll_reducer_received_records_total", "Log records received by reducers.",
     &GleanerMetrics::records_received, 1},
    {"atoll_reducer_received_bytes_total", "Bytes of log records received by reducers.",
     &GleanerMetrics::bytes_received, 1},
    {"atoll_reducer_sorted_runs_total",
     "Sorted runs that reducers wrote because their memory was full.", &GleanerMetrics::sorted_runs,
     1},
    {"atoll_reducer_dumped_bytes_total", "Bytes that reducers wrote to sorted runs.",
     &GleanerMetrics::bytes_dumped, 1},
    {"atoll_reducer_elided_records_total",
     "Log records that reducers removed because a later record covers them.",
     &GleanerMetrics::records_elided, 1},
    {"atoll_composer_records_total", "Log records that composers applied to pages.",
     &GleanerMetrics::records_composed, 1},
    {"atoll_gleaner_captured_pages_total", "Pages of snapshots that are images of volatile pages.",
     &GleanerMetrics::pages_captured, 1},
    {"atoll_composer_written_pages_total",
     "Pages of snapshots written by composers, captured pages included.",
     &GleanerMetrics::pages_written, 1},
    {"atoll_composer_written_bytes_total", "Bytes of these pages.", &GleanerMetrics::pages_written,
     kPageBytes},
    {"atoll_composer_read_pages_total",
     "Pages of earlier snapshots that composers read from files.", &GleanerMetrics::pages_read, 1},
    {"atoll_composer_cached_pages_total",
     "Pages of earlier snapshots that composers copied from the node's cache.",
     &GleanerMetrics::pages_cached, 1},
    {"atoll_composer_unreadable_pages_total",
     "Pages of earlier snapshots that composers could not read.", &GleanerMetrics::pages_unreadable,
     1},
    {"atoll_gleaner_paused_seconds_total",
     "Pauses of mappers and reducers that spread the work of snapshots over time.",
     &GleanerMetrics::paused_us, 1e-6},
    {"atoll_scrub_read_bytes_total", "Bytes of snapshot files and logs that the scrub read.",
     &GleanerMetrics::scrubbed_bytes, 1},
};

constexpr const char* kPhases[] = {"idle", "preparing", "gleaning"};
static_assert(std::size(kPhases) == kSnapshotJobPhaseCount);

}  // namespace

void add_snapshot_cache(MetricFamilies& families, const MetricsSegment& metrics) {
  const SnapshotCacheMetrics& cache = metrics.snapshot_cache;
  families
      .counter("atoll_snapshot_cache_reads_total",
               "Snapshot pages that workers requested from the cache: hits and misses.")
      .sample(sum_counter(metrics, &WorkerMetrics::snapshot_reads));
  families
      .counter("atoll_snapshot_cache_misses_total",
               "Reads of snapshot files, each of one page or of several adjacent pages.")
      .sample(value(cache.misses));
  families
      .counter("atoll_snapshot_cache_scan_ahead_pages_total",
               "Snapshot pages that scans read before they reached them, with a page they needed.")
      .sample(sum_counter(metrics, &WorkerMetrics::scan_pages_ahead));
  families.counter("atoll_snapshot_cache_evictions_total", "Pages evicted from the cache.")
      .sample(value(cache.evictions));
  families
      .counter(
          "atoll_snapshot_cache_ghost_hits_total",
          "Waits for snapshot pages that a cache larger by an eighth would have saved (estimate).")
      .sample(value(cache.ghost_hits));
  families
      .gauge("atoll_snapshot_cache_pages_to_warm",
             "Pages that the node remembers from before its start, to read them into the cache.")
      .sample(value(cache.pages_to_warm));
  families
      .counter("atoll_snapshot_cache_warmed_pages_total",
               "Remembered pages that have come into the cache since the node's start.")
      .sample(value(cache.pages_warmed));
  families
      .counter("atoll_snapshot_cache_waits_total",
               "Times that a worker waited for a free frame of the cache.")
      .sample(sum_counter(metrics, &WorkerMetrics::frame_stalls));
  families.gauge("atoll_snapshot_cache_size_bytes", "Size of the cache of snapshot pages.")
      .sample(value(cache.frames) * kPageBytes);
  families
      .gauge("atoll_snapshot_cache_lent_bytes",
             "Part of the cache in free pages that the volatile pool lends.")
      .sample(value(cache.lent_frames) * kPageBytes);
  families.gauge("atoll_snapshot_cache_used_bytes", "Part of the cache that holds pages.")
      .sample(value(cache.frames_in_use) * kPageBytes);
}

void add_storage_caches(MetricFamilies& families, const MetricsSegment& metrics,
                        const ControlSegment& control) {
  // By name: two samples with the same labels would make the scrape invalid. A name can occur twice
  // if a storage is dropped and created again during the loop.
  std::map<std::string, StorageCacheCounts> storages;
  for (const StorageControl& storage : control.storages) {
    // Acquire pairs with the release that made the storage ready: all fields are visible.
    const uint32_t state = storage.state.load(std::memory_order_acquire);
    if (state != static_cast<uint32_t>(StorageState::ready)) continue;
    const StorageCacheCounts counts = storage_cache_counts(metrics, storage.id);
    if (counts.pages_read == 0) continue;
    storages[std::string(storage.name, strnlen(storage.name, kMaxStorageName))] = counts;
  }
  if (storages.empty()) return;
  CHECK(storages.size() <= kMaxStorages);
  const auto add = [&](uint64_t StorageCacheCounts::* count, uint64_t unit) {
    for (const auto& [name, counts] : storages) {
      families.sample(counts.*count * unit, {{"storage", name}});
    }
  };
  families.gauge("atoll_snapshot_cache_storage_bytes",
                 "Size of the pages in the cache, by storage.");
  add(&StorageCacheCounts::pages, kPageBytes);
  families.counter("atoll_snapshot_cache_storage_read_pages_total",
                   "Pages read from snapshot files into the cache, also ahead, by storage.");
  add(&StorageCacheCounts::pages_read, 1);
  families.counter("atoll_snapshot_cache_storage_evictions_total",
                   "Pages evicted from the cache, by storage.");
  add(&StorageCacheCounts::evictions, 1);
}

void add_gleaner(MetricFamilies& families, const GleanerMetrics& gleaner) {
  families.gauge("atoll_gleaner_phase",
                 "1 for the phase of the node's snapshot job, 0 for the other phases.");
  for (uint32_t phase = 0; phase < kSnapshotJobPhaseCount; ++phase) {
    families.sample(value(gleaner.phase) == phase ? 1.0 : 0.0, {{"phase", kPhases[phase]}});
  }
  for (const GleanerCounter& each : kGleanerCounters) {
    families.counter(each.name, each.help)
        .sample(static_cast<double>(value(gleaner.*each.counter)) * each.unit);
  }
  families.counter("atoll_snapshot_cpu_seconds_total",
                   "Processor time of the threads that make and install snapshots.");
  for (uint32_t work = 0; work < kSnapshotWorkCount; ++work) {
    const std::string phase = kSnapshotWorkNames[work];
    const auto add = [&](const std::atomic<uint64_t>& us, const char* mode) {
      families.sample(static_cast<double>(value(us)) * 1e-6, {{"phase", phase}, {"mode", mode}});
    };
    add(gleaner.times.user_us[work], "user");
    add(gleaner.times.system_us[work], "system");
  }
}

void add_scrub(MetricFamilies& families, const GleanerMetrics& gleaner) {
  families
      .gauge("atoll_scrub_damaged_pages",
             "Pages of snapshots, blocks of logs and checkpoints, and whole files that the scrub "
             "found "
             "damaged.")
      .sample(value(gleaner.scrub_damaged));
  families.gauge("atoll_scrub_progress_ratio", "Part of the scrub's cycle that is done.")
      .sample(static_cast<double>(value(gleaner.scrub_percent)) / 100);
  families
      .gauge("atoll_scrub_finished_seconds",
             "When the scrub's last cycle ended, in seconds since 1970; 0: no cycle yet.")
      .sample(value(gleaner.scrub_finished_s));
}

void add_checkpoints(MetricFamilies& families, const NodeCheckpointMetrics& checkpoints) {
  families.gauge("atoll_checkpoint_phase",
                 "1 for what the node does for a checkpoint or a replay, 0 for the other phases.");
  DCHECK(value(checkpoints.phase) < kCheckpointPhaseCount);
  for (uint32_t phase = 0; phase < kCheckpointPhaseCount; ++phase) {
    families.sample(value(checkpoints.phase) == phase ? 1.0 : 0.0,
                    {{"phase", kCheckpointPhaseNames[phase]}});
  }
  families.add(kNodeCheckpointMetrics, checkpoints);
}

}  // namespace atolldb
