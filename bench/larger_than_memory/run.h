// The run: threads with the operations of YCSB on a store.
#pragma once

#include <cstdint>

#include "bench/larger_than_memory/store.h"
#include "bench/ycsb/job_input.h"

namespace atolldb::peers {

struct RunOptions {
  uint32_t threads = 1;
  uint32_t warmup_seconds = 0;
  uint32_t seconds = 1;
};

/// Runs operations for the warm-up and the measured seconds. Prints the rate of each second, then
/// the figures of the measured seconds as one line of JSON.
void run(Store& store, const ycsb::JobInput& input, const RunOptions& options);

}  // namespace atolldb::peers
