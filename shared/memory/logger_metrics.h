// Counters of one logger thread, in the node's `metrics` segment. Writer: that logger. Readers: any
// process.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/memory/counter.h"
#include "shared/memory/histogram.h"

namespace atolldb {

struct alignas(64) LoggerMetrics {
  Counter written_bytes;  // including headers, markers and padding
  Counter blocks;
  Counter batches;  // epochs made durable
  Counter files;
  Counter failed_preallocations;      // attempts to preallocate the next file that found no space
  std::atomic<uint64_t> batch_bytes;  // size of the latest batch
  std::atomic<uint64_t> epoch_lag;    // current epoch minus the batch's epoch, at its sync
  std::atomic<uint64_t> lacks_next_file;  // 1 if the latest preallocation failed, else 0
  Histogram write_ns;                     // time to write a batch with its marker, without its sync
  Histogram sync_ns;                      // time of the sync
};

}  // namespace atolldb
