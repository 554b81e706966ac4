// Counters of a node's snapshot cache, and of its part of snapshot jobs, since the cluster began.
// They are in the node's `metrics` segment. Writer: the node's control loop, at each heartbeat.
// Readers: any process.
//
// A new counter of snapshot jobs needs: a member of SnapshotJobProgress, a member of
// GleanerMetrics, and a row of kSnapshotJobCounters, all in this file; a row of kGleanerCounters
// (shared/metrics/gleaner_families.cpp); and the code that counts it
// (SnapshotJobWork::progress_locked).
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>

namespace atolldb {

/// Phase of a node in a snapshot job, in the order of a job.
enum class SnapshotJobPhase : uint32_t { idle = 0, preparing, gleaning };
inline constexpr uint32_t kSnapshotJobPhaseCount = 3;

/// What a thread of a snapshot does. Its processor time is counted by these phases.
enum class SnapshotWork : uint32_t {
  capture = 0,  // images of volatile pages
  map,          // mappers: reading the log
  sort,         // mappers: sorting records
  exchange,     // mappers: sending records to reducers
  merge,        // reducers: collecting, and merging sorted runs
  compose,      // reducers: reading and writing pages
  finish,       // completing the file of pages
  install,      // installing the snapshot beside volatile pages, dropping pages
};
inline constexpr uint32_t kSnapshotWorkCount = 8;
/// Names of the phases, in the order of SnapshotWork.
inline constexpr const char* kSnapshotWorkNames[] = {"capture", "map",     "sort",   "exchange",
                                                     "merge",   "compose", "finish", "install"};
static_assert(std::size(kSnapshotWorkNames) == kSnapshotWorkCount);

/// Processor time of all threads of a node by phase. Writers: these threads, each at the end of
/// some milliseconds of work (WorkClock), by read-modify-writes.
struct SnapshotWorkTimes {
  std::atomic<uint64_t> user_us[kSnapshotWorkCount];
  std::atomic<uint64_t> system_us[kSnapshotWorkCount];  // time in the kernel
};

/// Counters of the snapshot cache. The workers count its lookups (WorkerMetrics::snapshot_reads).
struct SnapshotCacheMetrics {
  std::atomic<uint64_t> frames;
  std::atomic<uint64_t> frames_in_use;
  std::atomic<uint64_t> misses;
  std::atomic<uint64_t> evictions;
  std::atomic<uint64_t> pages_to_warm;  // pages in the cache when the node last noted them
  std::atomic<uint64_t> pages_warmed;   // those of pages_to_warm that the cache has again
  std::atomic<uint64_t> lent_frames;    // part of `frames` that the pool has lent
  std::atomic<uint64_t> ghost_hits;     // waits that a cache larger by 1/8 would have saved
};
static_assert(sizeof(SnapshotCacheMetrics) == 64);

/// Counters of the snapshot cache for one storage. Its slot is id % kMaxStorages.
struct StorageCacheMetrics {
  std::atomic<uint64_t> storage_id;  // 0: no storage yet; stored last, with release
  std::atomic<uint64_t> pages;       // pages in the cache now
  std::atomic<uint64_t> pages_read;
  std::atomic<uint64_t> evictions;
};
static_assert(sizeof(StorageCacheMetrics) == 32);

/// Counters of one snapshot job on a node, or their sums over several jobs.
struct SnapshotJobProgress {
  // Counters of the mappers.
  uint64_t bytes_read = 0;  // bytes of log files
  uint64_t records_read = 0;
  uint64_t records_shipped = 0;
  uint64_t records_captured = 0;  // records left out, because captured pages hold them (R75)
  // Counters of the reducers.
  uint64_t records_received = 0;
  uint64_t bytes_received = 0;
  uint64_t sorted_runs = 0;
  uint64_t bytes_dumped = 0;    // bytes written to sorted runs
  uint64_t records_elided = 0;  // received records that a later record covers (R35)
  uint64_t records_composed = 0;
  // Counter of the capture of volatile pages. It grows when a partition is captured.
  uint64_t pages_captured = 0;
  // Counters of the composers. Those of one composer are added when it has ended.
  uint64_t pages_written = 0;     // captured pages included
  uint64_t pages_read = 0;        // pages of earlier snapshots that came from files
  uint64_t pages_unreadable = 0;  // part of pages_read that could not be read
  uint64_t pages_cached = 0;      // pages of earlier snapshots that came from the node's cache
  // Counter of the mappers and reducers.
  uint64_t paused_us = 0;  // sum of the pauses of all threads

  SnapshotJobProgress& operator+=(const SnapshotJobProgress& other);
};

/// Sums over all jobs, including the current one and failed ones. SnapshotJobProgress describes the
/// counters.
struct GleanerMetrics {
  std::atomic<uint64_t> phase;  // SnapshotJobPhase
  std::atomic<uint64_t> bytes_read;
  std::atomic<uint64_t> records_read;
  std::atomic<uint64_t> records_shipped;
  std::atomic<uint64_t> records_captured;
  std::atomic<uint64_t> records_received;
  std::atomic<uint64_t> bytes_received;
  std::atomic<uint64_t> sorted_runs;
  std::atomic<uint64_t> bytes_dumped;
  std::atomic<uint64_t> records_elided;
  std::atomic<uint64_t> records_composed;
  std::atomic<uint64_t> pages_captured;
  std::atomic<uint64_t> pages_written;
  std::atomic<uint64_t> pages_read;
  std::atomic<uint64_t> pages_unreadable;
  std::atomic<uint64_t> paused_us;
  // Counters of the background scrub.
  std::atomic<uint64_t> scrubbed_bytes;
  std::atomic<uint64_t> scrub_damaged;  // pages, blocks and files that are damaged now
  std::atomic<uint64_t> scrub_percent;  // progress of the current cycle
  std::atomic<uint64_t>
      scrub_finished_s;  // end of the last cycle, in seconds since 1970; 0: no cycle yet
  std::atomic<uint64_t> pages_cached;
  std::atomic<uint64_t> spare[3];
  SnapshotWorkTimes times;
};
static_assert(sizeof(GleanerMetrics) == 320);

struct SnapshotJobCounter {
  const char* name;  // name of the member in the answer to glean.wait
  uint64_t SnapshotJobProgress::* progress;
  std::atomic<uint64_t> GleanerMetrics::* total;
};
inline constexpr SnapshotJobCounter kSnapshotJobCounters[] = {
    {"bytes_read", &SnapshotJobProgress::bytes_read, &GleanerMetrics::bytes_read},
    {"records_read", &SnapshotJobProgress::records_read, &GleanerMetrics::records_read},
    {"records_shipped", &SnapshotJobProgress::records_shipped, &GleanerMetrics::records_shipped},
    {"records_captured", &SnapshotJobProgress::records_captured, &GleanerMetrics::records_captured},
    {"records_received", &SnapshotJobProgress::records_received, &GleanerMetrics::records_received},
    {"bytes_received", &SnapshotJobProgress::bytes_received, &GleanerMetrics::bytes_received},
    {"sorted_runs", &SnapshotJobProgress::sorted_runs, &GleanerMetrics::sorted_runs},
    {"bytes_dumped", &SnapshotJobProgress::bytes_dumped, &GleanerMetrics::bytes_dumped},
    {"records_elided", &SnapshotJobProgress::records_elided, &GleanerMetrics::records_elided},
    {"records_composed", &SnapshotJobProgress::records_composed, &GleanerMetrics::records_composed},
    {"pages_captured", &SnapshotJobProgress::pages_captured, &GleanerMetrics::pages_captured},
    {"pages_written", &SnapshotJobProgress::pages_written, &GleanerMetrics::pages_written},
    {"pages_read", &SnapshotJobProgress::pages_read, &GleanerMetrics::pages_read},
    {"pages_unreadable", &SnapshotJobProgress::pages_unreadable, &GleanerMetrics::pages_unreadable},
    {"pages_cached", &SnapshotJobProgress::pages_cached, &GleanerMetrics::pages_cached},
    {"paused_us", &SnapshotJobProgress::paused_us, &GleanerMetrics::paused_us},
};
static_assert(std::size(kSnapshotJobCounters) * sizeof(uint64_t) == sizeof(SnapshotJobProgress),
              "each counter has a row");

inline SnapshotJobProgress& SnapshotJobProgress::operator+=(const SnapshotJobProgress& other) {
  for (const SnapshotJobCounter& each : kSnapshotJobCounters) {
    this->*each.progress += other.*each.progress;
  }
  return *this;
}

}  // namespace atolldb
