// Layout of a node's `metrics` segment: counters of its workers, loggers, sessions and devices.
// Readers: any process.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/check.h"
#include "shared/base/status.h"
#include "shared/memory/checkpoint_metrics.h"
#include "shared/memory/gleaner_metrics.h"
#include "shared/memory/histogram.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

/// Memory of the long inputs and outputs of a node. Several threads change the words, by
/// read-modify-writes, only for inputs and outputs of more than 64 KiB.
struct PayloadMetrics {
  std::atomic<uint64_t> limit_bytes;  // procedures.payload_memory
  std::atomic<uint64_t> used_bytes;
  std::atomic<uint64_t> refused;  // inputs and outputs for which there was no room
  std::atomic<uint64_t> spare[5];
};
static_assert(sizeof(PayloadMetrics) == 64);

/// Counters of a node's sessions. Several threads increment them, by read-modify-writes.
struct SessionMetrics {
  std::atomic<uint64_t> open;         // open now; a session is open until its last call has ended
  std::atomic<uint64_t> opened;       // sessions opened since the node began
  std::atomic<uint64_t> refused;      // refused because of the session limit
  std::atomic<uint64_t> broken;       // ended because the client violated the protocol of the rings
  std::atomic<uint64_t> requests;     // requests taken out of rings
  std::atomic<uint64_t> unavailable;  // rejected with `unavailable` or `recovering`
  std::atomic<uint64_t> outcome_unknown;
  std::atomic<uint64_t> spare;
  PayloadMetrics payloads;
};
static_assert(sizeof(SessionMetrics) == 128);

/// Counters of one logger. Writer: that logger.
struct alignas(64) LoggerMetrics {
  Counter written_bytes;  // including headers, markers and padding
  Counter blocks;
  Counter batches;  // syncs, each of which made one or more epochs durable
  Counter files;
  Counter failed_preallocations;      // attempts to preallocate the next file that found no space
  std::atomic<uint64_t> batch_bytes;  // size of the latest batch
  std::atomic<uint64_t> epoch_lag;    // at the latest sync: current epoch minus the batch's epoch
  std::atomic<uint64_t> lacks_next_file;  // 1 if the latest preallocation failed, else 0
  Histogram epoch_end_ns;                 // from the end of a batch's first epoch to the batch
  Histogram close_ns;                     // time to wait for commits in progress
  Histogram write_ns;                     // time to write a batch with its marker, without its sync
  Histogram sync_ns;                      // time of the sync
};

/// A text in shared memory with one writer.
class SharedText {
 public:
  static constexpr size_t kBytes = 248;

  /// Stores the last kBytes of a longer text, because a path ends with the file name.
  void set(std::string_view text);
  std::string text() const;

 private:
  std::atomic<uint64_t> version_;  // odd while the text is written
  std::array<std::atomic<uint64_t>, kBytes / 8> words_;
};

/// A process's oldest device call in progress (R58), in the node's segment or local to the
/// coordinator. Writer: the process's heartbeat.
struct alignas(64) DeviceMetrics {
  std::atomic<uint64_t> pending_ns;  // age of the oldest call; 0: no call is in progress
  std::atomic<uint64_t> hangs;       // number of calls that took longer than the limit
  std::atomic<uint32_t> operation;   // IoOperation of a call past the limit; 0: no such call
  std::atomic<uint32_t> spare;
  SharedText path;  // path of the call past the limit
  // Emulated delays (DelayCounts), and their time as asked for and as taken.
  std::atomic<uint64_t> delays;
  std::atomic<uint64_t> delay_asked_ns;
  std::atomic<uint64_t> delay_taken_ns;
};

/// Counters of one worker or auxiliary thread. Writer: that thread.
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
  Counter page_delays;     // waits for the node's page budget, and their time
  Counter page_delay_ns;
  Counter delta_added;  // records added to delta trees, and removed from them (R76, R78)
  Counter delta_drained;
  Counter scan_pages_ahead;  // snapshot pages that scans read before they reached them
  Counter gate_waits;        // waits for a place in the node's RunGate
  Counter early_locks;       // locks that retries took before their first read (R104)
  Counter spare[1];
  /// Operations by storage: records that were searched for, one by one or in batches, appends, and
  /// records that scans returned. The index is id % kMaxStorages. A later storage of the same slot
  /// continues the count (StorageControl::operations_before).
  Counter storage_operations[kMaxStorages];
};

/// Fixed part of the segment. One WorkerMetrics per slot follows, also for auxiliary threads.
struct MetricsSegment {
  SegmentHeader header;
  uint32_t slot_count;
  uint32_t spare[15];
  LoggerMetrics loggers[kMaxLoggersPerNode];
  SessionMetrics sessions;
  // Without a log this and the next 4 members are 0. A scheme of durability uses either the
  // counters of snapshots or those of checkpoints.
  SnapshotCacheMetrics snapshot_cache;
  GleanerMetrics gleaner;
  NodeCheckpointMetrics checkpoint;
  DeviceMetrics device;
  StorageCacheMetrics storage_caches[kMaxStorages];

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

/// Returns the sum over all threads of a node, for `atoll status` and for scrapes.
uint64_t sum_counter(const MetricsSegment& metrics, Counter WorkerMetrics::* counter);
uint64_t sum_aborts(const MetricsSegment& metrics, Status reason);

/// Returns the operations on the storage's slot by all threads of a node.
uint64_t slot_operations(const MetricsSegment& metrics, uint32_t storage_id);
/// Returns the operations on the storage by all nodes, since the storage or the cluster began.
uint64_t storage_operations(std::span<const MetricsSegment* const> nodes,
                            const StorageControl& storage);

/// Pages of one storage in snapshot caches.
struct StorageCacheCounts {
  uint64_t pages = 0;       // in the caches now
  uint64_t pages_read = 0;  // from the device since the start, including pages read ahead
  uint64_t evictions = 0;

  StorageCacheCounts& operator+=(const StorageCacheCounts& other);
};
/// Returns the counts of a node's cache for a storage. They are 0 if it had no page of it.
StorageCacheCounts storage_cache_counts(const MetricsSegment& metrics, uint32_t storage_id);

}  // namespace atolldb
