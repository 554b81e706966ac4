// What a benchmark found out: merged results of the workers, as text and as JSON.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "bench/common/machine_info.h"
#include "bench/tpcc/run_result.h"
#include "bench/tpcc_driver/options.h"

namespace atolldb::tpcc {

struct NodeSummary {
  double tps = 0;
  EngineCounts engine;
};

/// One run over all workers.
struct RunSummary {
  double seconds = 0;  // the longest of the workers
  double tps = 0;      // committed transactions, all types
  std::vector<NodeSummary> nodes;
  std::array<uint64_t, kTransactionTypes> commits{};
  std::array<double, kTransactionTypes> tps_of_type{};
  std::array<bench::LatencyHistogram, kTransactionTypes> latency;
  uint64_t user_aborts = 0;
  uint64_t delivered_orders = 0;
  uint64_t skipped_deliveries = 0;
  EngineCounts engine;
  std::string ended_early;
};

/// Merges the outputs of tpcc.run.
Result<std::unique_ptr<RunSummary>> summarize(const std::vector<std::string>& outputs,
                                              uint32_t nodes);

/// Of clause 3.3.2, and what the survey found.
struct PoolUse {
  uint32_t node = 0;
  uint64_t bytes = 0;
  uint64_t used_bytes = 0;
};

struct Report {
  Options options;
  uint32_t nodes = 0;
  uint32_t workers = 0;
  uint32_t warehouses = 0;
  std::string mode;
  bench::MachineInfo machine;
  uint32_t pool_page_bytes = 0;
  double load_seconds = 0;
  std::vector<std::unique_ptr<RunSummary>> runs;
  std::vector<std::pair<std::string, uint64_t>> storage_bytes;
  std::vector<PoolUse> pools;
  bool verify_done = false;
  std::vector<std::string> violations;

  /// "(durability off)" stands beside every figure.
  std::string durability_note() const { return "durability " + options.durability; }
  double median_tps() const;
  /// The run with the median (lower of the two in the middle). REQUIRES: there is a run.
  const RunSummary& median_run() const;
  bool ended_early() const;

  std::string text() const;
  nlohmann::json json() const;
};

}  // namespace atolldb::tpcc
