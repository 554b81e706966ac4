// The report of `atoll bench ycsb`, as text and as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "bench/driver/report.h"
#include "bench/driver/run_summary.h"
#include "bench/ycsb/run_result.h"
#include "bench/ycsb/verify_result.h"
#include "bench/ycsb_driver/options.h"

namespace atolldb::ycsb {

struct RunSummary : bench::RunSummary {
  explicit RunSummary(uint32_t node_count) : bench::RunSummary(node_count, kTypes) {}

  uint64_t scanned_records = 0;
  uint64_t updates = 0;  // updates of fields; this and the members below include the warm-up
  uint64_t torn_reads = 0;
  std::vector<std::vector<uint64_t>> inserted;  // by node and worker, since the load
};

/// Merges the outputs of ycsb.run.
Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes);

/// Compares the records with what the runs committed, and returns the differences. `runs`: all runs
/// since the load. Does not compare update counts after blind updates, which reset them.
std::vector<std::string> find_violations(const std::vector<VerifyResult>& found,
                                         const std::vector<std::unique_ptr<RunSummary>>& runs,
                                         const JobInput& input, uint32_t nodes);

struct Report : bench::RunReport<RunSummary> {
  Options options;
  JobInput input;

  double operations_per_second() const { return median_tps() * input.operations; }
  /// Returns the expected percentage of operations on records of other nodes, among the operations
  /// that choose an existing record.
  double remote_percent() const;

  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::ycsb
