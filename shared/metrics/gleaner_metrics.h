// What a node's cache of snapshot pages and its part of the gleaner have done since the cluster
// began. Writer: the node's control loop, each heartbeat; in its `metrics` segment, read by
// anybody.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

/// What a node is doing in a run of the gleaner. In the order of a run.
enum class GleanPhase : uint32_t { idle = 0, preparing, gleaning };
inline constexpr uint32_t kGleanPhaseCount = 3;

/// Look-ups are counted by the workers (WorkerMetrics::snapshot_reads).
struct SnapshotCacheMetrics {
  std::atomic<uint64_t> frames;
  std::atomic<uint64_t> frames_in_use;
  std::atomic<uint64_t> misses;
  std::atomic<uint64_t> evictions;
  std::atomic<uint64_t> spare[4];
};
static_assert(sizeof(SnapshotCacheMetrics) == 64);

/// Of all runs together, that under way and those that failed included.
struct GleanerMetrics {
  std::atomic<uint64_t> phase;  // GleanPhase
  // Mappers.
  std::atomic<uint64_t> bytes_read;  // of log files
  std::atomic<uint64_t> records_read;
  std::atomic<uint64_t> records_shipped;
  // Reducers.
  std::atomic<uint64_t> records_received;
  std::atomic<uint64_t> bytes_received;
  std::atomic<uint64_t> sorted_runs;
  std::atomic<uint64_t> bytes_dumped;
  // Composers, each when it has ended.
  std::atomic<uint64_t> records_composed;
  std::atomic<uint64_t> pages_written;
  std::atomic<uint64_t> pages_read;        // of earlier snapshots
  std::atomic<uint64_t> pages_unreadable;  // of these
  // The scrub.
  std::atomic<uint64_t> scrubbed_bytes;
  std::atomic<uint64_t> scrub_damaged;     // pages, blocks and files that are damaged now
  std::atomic<uint64_t> scrub_percent;     // of the cycle under way
  std::atomic<uint64_t> scrub_finished_s;  // when the last one ended, since 1970; 0: none
};
static_assert(sizeof(GleanerMetrics) == 128);

}  // namespace atolldb
