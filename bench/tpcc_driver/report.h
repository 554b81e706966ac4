// The report of `atoll bench tpcc`: merged results of the workers, as text and as JSON.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/driver/report.h"
#include "bench/driver/run_summary.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc_driver/options.h"

namespace atolldb::tpcc {

using bench::NodeSummary;

/// The merged results of all workers of one run.
struct RunSummary : bench::RunSummary {
  explicit RunSummary(uint32_t node_count) : bench::RunSummary(node_count, kTransactionTypes) {}

  uint64_t user_aborts = 0;
  uint64_t delivered_orders = 0;
  uint64_t skipped_deliveries = 0;
};

/// Merges the outputs of tpcc.run.
Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes);

struct Report : bench::RunReport<RunSummary> {
  Options options;
  uint32_t warehouses = 0;

  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::tpcc
