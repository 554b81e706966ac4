// Counters of a node's part of checkpoints and replays, since the cluster began. They are in the
// node's `metrics` segment. Writer: the node's control loop, at each heartbeat. Readers: any
// process.
//
// A new counter needs: a member of CheckpointProgress or ReplayCounters, a member of
// NodeCheckpointMetrics, and a row of the table of counters, all in this file; and the code that
// counts it (engine/checkpoint).
#pragma once

#include <atomic>
#include <cstdint>
#include <iterator>

namespace atolldb {

/// What a node does for a checkpoint or a replay now.
enum class CheckpointPhase : uint32_t { idle = 0, copying, replaying, cleaning };
inline constexpr uint32_t kCheckpointPhaseCount = 4;
/// Names of the phases, in the order of CheckpointPhase.
inline constexpr const char* kCheckpointPhaseNames[] = {"idle", "copying", "replaying", "cleaning"};
static_assert(std::size(kCheckpointPhaseNames) == kCheckpointPhaseCount);

/// Counters of one checkpoint on a node, or their sums over several checkpoints.
struct CheckpointProgress {
  uint64_t pages = 0;    // pages that were read
  uint64_t records = 0;  // records that were copied
  uint64_t skipped = 0;  // records that were not copied, because the log has them
  uint64_t bytes = 0;    // bytes written to files
  uint64_t blocks = 0;
  uint64_t syncs = 0;  // number of file syncs

  CheckpointProgress& operator+=(const CheckpointProgress& other);
};

/// Counters of one replay, or of one of its threads. Records are those of the node's files.
struct ReplayCounters {
  uint64_t bytes = 0;        // of the files
  uint64_t records = 0;      // read and within the epochs, fillers excluded
  uint64_t inserted = 0;     // versions that were new
  uint64_t overwritten = 0;  // versions that replaced older ones
  uint64_t older = 0;        // versions that were skipped, because newer ones were there
  uint64_t outside = 0;      // blocks of epochs that do not count (R95)
  uint64_t dropped = 0;      // records of storages that were dropped
  uint64_t updates = 0;      // updates that were applied at the end

  ReplayCounters& operator+=(const ReplayCounters& other);
};

/// Sums over all checkpoints, including the current one and failed ones, and the counters of the
/// replay at the start. CheckpointProgress and ReplayCounters describe them.
struct NodeCheckpointMetrics {
  std::atomic<uint64_t> phase;  // CheckpointPhase
  std::atomic<uint64_t> pages;
  std::atomic<uint64_t> records;
  std::atomic<uint64_t> skipped;
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> blocks;
  std::atomic<uint64_t> syncs;
  std::atomic<uint64_t> replayed_bytes;
  std::atomic<uint64_t> replayed_records;
  std::atomic<uint64_t> replayed_inserted;
  std::atomic<uint64_t> replayed_overwritten;
  std::atomic<uint64_t> replayed_older;
  std::atomic<uint64_t> replayed_outside;
  std::atomic<uint64_t> replayed_dropped;
  std::atomic<uint64_t> replayed_updates;
  std::atomic<uint64_t> replay_bytes_total;  // bytes that this node reads in the replay
};
static_assert(sizeof(NodeCheckpointMetrics) == 128);

struct CheckpointCounter {
  const char* name;  // name of the member in the answer to checkpoint.wait
  uint64_t CheckpointProgress::* progress;
  std::atomic<uint64_t> NodeCheckpointMetrics::* total;
};
inline constexpr CheckpointCounter kCheckpointCounters[] = {
    {"pages", &CheckpointProgress::pages, &NodeCheckpointMetrics::pages},
    {"records", &CheckpointProgress::records, &NodeCheckpointMetrics::records},
    {"skipped", &CheckpointProgress::skipped, &NodeCheckpointMetrics::skipped},
    {"bytes", &CheckpointProgress::bytes, &NodeCheckpointMetrics::bytes},
    {"blocks", &CheckpointProgress::blocks, &NodeCheckpointMetrics::blocks},
    {"syncs", &CheckpointProgress::syncs, &NodeCheckpointMetrics::syncs},
};
static_assert(std::size(kCheckpointCounters) * sizeof(uint64_t) == sizeof(CheckpointProgress),
              "each counter has a row");

struct ReplayCounter {
  const char* name;  // name of the member in the answer to replay.wait
  uint64_t ReplayCounters::* counter;
  std::atomic<uint64_t> NodeCheckpointMetrics::* total;
};
inline constexpr ReplayCounter kReplayCounters[] = {
    {"bytes", &ReplayCounters::bytes, &NodeCheckpointMetrics::replayed_bytes},
    {"records", &ReplayCounters::records, &NodeCheckpointMetrics::replayed_records},
    {"inserted", &ReplayCounters::inserted, &NodeCheckpointMetrics::replayed_inserted},
    {"overwritten", &ReplayCounters::overwritten, &NodeCheckpointMetrics::replayed_overwritten},
    {"older", &ReplayCounters::older, &NodeCheckpointMetrics::replayed_older},
    {"outside", &ReplayCounters::outside, &NodeCheckpointMetrics::replayed_outside},
    {"dropped", &ReplayCounters::dropped, &NodeCheckpointMetrics::replayed_dropped},
    {"updates", &ReplayCounters::updates, &NodeCheckpointMetrics::replayed_updates},
};
static_assert(std::size(kReplayCounters) * sizeof(uint64_t) == sizeof(ReplayCounters),
              "each counter has a row");

inline CheckpointProgress& CheckpointProgress::operator+=(const CheckpointProgress& other) {
  for (const CheckpointCounter& each : kCheckpointCounters) {
    this->*each.progress += other.*each.progress;
  }
  return *this;
}
inline ReplayCounters& ReplayCounters::operator+=(const ReplayCounters& other) {
  for (const ReplayCounter& each : kReplayCounters) {
    this->*each.counter += other.*each.counter;
  }
  return *this;
}

}  // namespace atolldb
