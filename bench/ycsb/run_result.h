// Results of one worker in a run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "bench/job/worker_result.h"
#include "bench/ycsb/workload.h"
#include "shared/base/error.h"

namespace atolldb::ycsb {

struct RunResult : bench::WorkerResult {
  RunResult() : WorkerResult(kTypes) {}

  uint64_t scanned_records = 0;  // that committed scans returned
  // For the verification; these include the warm-up.
  uint64_t updates = 0;     // committed updates of fields
  uint64_t inserted = 0;    // records that this worker has inserted in the life of the database
  uint64_t torn_reads = 0;  // records read that were not whole

  std::string to_json() const;
  static Result<RunResult> parse(std::string_view text);
};

}  // namespace atolldb::ycsb
