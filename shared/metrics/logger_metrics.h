// Counters of one logger thread: single writer, in the node's `metrics` segment, read by anybody.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/metrics/counter.h"
#include "shared/metrics/histogram.h"

namespace atolldb {

struct alignas(64) LoggerMetrics {
  Counter written_bytes;  // headers, markers and padding included
  Counter blocks;
  Counter batches;  // epochs made durable
  Counter files;
  Counter failed_preallocations;      // attempts to make the next file ahead that found no room
  std::atomic<uint64_t> batch_bytes;  // of the latest batch
  std::atomic<uint64_t> epoch_lag;    // epochs between the latest batch's and the current one then
  std::atomic<uint64_t> lacks_next_file;  // 1: the latest of these attempts failed; else 0
  Histogram write_ns;                     // of a batch with its marker, its sync excluded
  Histogram sync_ns;                      // of the sync
};

}  // namespace atolldb
