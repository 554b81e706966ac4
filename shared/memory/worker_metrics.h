// Counters of one worker, in the node's `metrics` segment. Writer: that worker. Readers: any
// process.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/base/status.h"
#include "shared/memory/counter.h"
#include "shared/memory/device_metrics.h"
#include "shared/memory/gleaner_metrics.h"
#include "shared/memory/logger_metrics.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

/// Counters of a node's sessions. Several threads increment them, each rarely or for many requests
/// at once, by read-modify-writes.
struct SessionMetrics {
  std::atomic<uint64_t> open;         // open now, including those that wait for their last request
  std::atomic<uint64_t> opened;       // ever
  std::atomic<uint64_t> refused;      // because of the session limit
  std::atomic<uint64_t> broken;       // ended because the client broke the rules of the rings
  std::atomic<uint64_t> requests;     // requests taken out of rings
  std::atomic<uint64_t> unavailable;  // rejected for now, including `recovering`
  std::atomic<uint64_t> outcome_unknown;
  std::atomic<uint64_t> spare;
};
static_assert(sizeof(SessionMetrics) == 64);

struct alignas(64) WorkerMetrics {
  Counter commits;
  Counter read_only_commits;
  Counter aborts[kStatusCount];  // by reason, including user_abort
  Counter local_accesses;        // pages resolved in this node's pool
  Counter remote_accesses;       // pages resolved in other nodes' pools
  Counter local_locks;
  Counter remote_locks;
  Counter remote_frees;  // pages returned to their owner through a return ring
  Counter pages_allocated;
  Counter pages_retired;
  Counter splits;
  Counter adoptions;
  Counter compactions;
  Counter merges;
  Counter next_layers;
  Counter log_bytes;
  Counter log_stalls;      // waits for room in the log buffer
  Counter page_stalls;     // waits for free pages of the volatile pool
  Counter snapshot_reads;  // snapshot pages requested from the node's cache
  Counter frame_stalls;    // waits for a free frame of the node's snapshot cache
  Counter spare[8];
};

/// Fixed part. One WorkerMetrics per slot follows, also for auxiliary threads.
struct MetricsSegment {
  SegmentHeader header;
  uint32_t slot_count;
  uint32_t spare[15];
  LoggerMetrics loggers[kMaxLoggersPerNode];
  SessionMetrics sessions;
  SnapshotCacheMetrics snapshot_cache;  // this and the next two: all 0 without a log
  GleanerMetrics gleaner;
  DeviceMetrics device;

  WorkerMetrics& worker(uint32_t ordinal) {
    return reinterpret_cast<WorkerMetrics*>(this + 1)[ordinal];
  }
  const WorkerMetrics& worker(uint32_t ordinal) const {
    return reinterpret_cast<const WorkerMetrics*>(this + 1)[ordinal];
  }
  static uint64_t bytes(uint32_t slots) {
    return sizeof(MetricsSegment) + uint64_t{slots} * sizeof(WorkerMetrics);
  }
};
static_assert(sizeof(MetricsSegment) % alignof(WorkerMetrics) == 0);

}  // namespace atolldb
