// Runs TPC-C to produce a log that other benchmarks read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "shared/base/error.h"

namespace atolldb::cli {

struct TpccForItsLog {
  std::string command;        // prefix of error messages: "bench log"
  std::string cluster_name;   // name of the cluster
  std::string what_to_lower;  // when it does not fit: "--record-seconds"
  uint32_t seconds = 1;
  uint32_t warehouses = 0;  // 0: one per worker
};

/// `data_dir` is removed when it returns. Log from `run_epoch` on belongs to the run, earlier log
/// to its load.
using UseLog = std::function<Result<void>(const std::string& data_dir, uint64_t run_epoch)>;

/// Runs on its own cluster with one node and one worker, which has stopped when `use` is called.
Result<void> run_tpcc_for_its_log(const TpccForItsLog& run, const UseLog& use);

}  // namespace atolldb::cli
