// Results of one worker in a run.
#pragma once

#include <cstdint>

#include "bench/job/worker_result.h"
#include "bench/ycsb/workload.h"

namespace atolldb::ycsb {

struct RunResult : bench::CountingResult<RunResult> {
  RunResult() : CountingResult(kTypes) {}

  uint64_t scanned_records = 0;  // number of records that committed scans returned
  // The members below are for the verification. They include the warm-up.
  uint64_t updates = 0;     // committed updates of fields
  uint64_t inserted = 0;    // records that this worker has inserted in the life of the database
  uint64_t torn_reads = 0;  // number of torn records among those read

  static constexpr const char* kBenchmark = "ycsb";
  static constexpr bench::RunCounter<RunResult> kCounters[] = {
      {"scanned_records", &RunResult::scanned_records},
      {"updates", &RunResult::updates},
      {"inserted", &RunResult::inserted},
      {"torn_reads", &RunResult::torn_reads}};
};

}  // namespace atolldb::ycsb
