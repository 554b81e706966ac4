// Results of one worker in a run.
#pragma once

#include <cstdint>

#include "bench/job/worker_result.h"
#include "bench/tpcc/inputs.h"

namespace atolldb::tpcc {

using bench::EngineCounts;

struct RunResult : bench::CountingResult<RunResult> {
  RunResult() : CountingResult(kTransactionTypes) {}

  uint64_t user_aborts = 0;  // New-Orders with an unused item, rolled back (clause 2.4.1.4)
  uint64_t delivered_orders = 0;
  uint64_t skipped_deliveries = 0;  // districts without a new order (clause 2.7.4.2)

  static constexpr const char* kBenchmark = "tpcc";
  static constexpr bench::RunCounter<RunResult> kCounters[] = {
      {"user_aborts", &RunResult::user_aborts},
      {"delivered_orders", &RunResult::delivered_orders},
      {"skipped_deliveries", &RunResult::skipped_deliveries}};
};

}  // namespace atolldb::tpcc
