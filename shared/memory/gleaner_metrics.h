// Counters of a node's snapshot cache, and of its part of the gleaner, since the cluster began. In
// the node's `metrics` segment. Writer: the node's control loop, at each heartbeat. Readers: any
// process.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

/// Phase of a node in a run of the gleaner, in the order of a run.
enum class GleanPhase : uint32_t { idle = 0, preparing, gleaning };
inline constexpr uint32_t kGleanPhaseCount = 3;

/// The workers count the lookups (WorkerMetrics::snapshot_reads).
struct SnapshotCacheMetrics {
  std::atomic<uint64_t> frames;
  std::atomic<uint64_t> frames_in_use;
  std::atomic<uint64_t> misses;
  std::atomic<uint64_t> evictions;
  std::atomic<uint64_t> spare[4];
};
static_assert(sizeof(SnapshotCacheMetrics) == 64);

/// Sums over all runs, including the current one and failed ones.
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
  // Composers, each counted when it has ended.
  std::atomic<uint64_t> records_composed;
  std::atomic<uint64_t> pages_written;
  std::atomic<uint64_t> pages_read;        // of earlier snapshots
  std::atomic<uint64_t> pages_unreadable;  // pages of pages_read that could not be read
  // The scrub.
  std::atomic<uint64_t> scrubbed_bytes;
  std::atomic<uint64_t> scrub_damaged;  // pages, blocks and files that are damaged now
  std::atomic<uint64_t> scrub_percent;  // progress of the current cycle
  std::atomic<uint64_t>
      scrub_finished_s;  // end of the last cycle, in seconds since 1970; 0: no cycle yet
};
static_assert(sizeof(GleanerMetrics) == 128);

}  // namespace atolldb
