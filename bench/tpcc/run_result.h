// Results of one worker in a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/job/worker_result.h"
#include "bench/tpcc/inputs.h"
#include "shared/base/error.h"

namespace atolldb::tpcc {

using bench::EngineCounts;

struct RunResult : bench::WorkerResult {
  RunResult() : WorkerResult(kTransactionTypes) {}

  uint64_t user_aborts = 0;  // New-Orders with an unused item, rolled back (clause 2.4.1.4)
  uint64_t delivered_orders = 0;
  uint64_t skipped_deliveries = 0;  // districts without a new order (clause 2.7.4.2)

  std::string to_json() const;
  static Result<RunResult> parse(std::string_view text);
};

}  // namespace atolldb::tpcc
