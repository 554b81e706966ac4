// Input and output of the jobs, as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "bench/job/run_times.h"
#include "bench/tpcc/inputs.h"
#include "bench/tpcc/scale.h"
#include "shared/base/error.h"

namespace atolldb::tpcc {

inline constexpr const char* kLoadJob = "tpcc.load";
inline constexpr const char* kRunJob = "tpcc.run";
inline constexpr const char* kVerifyJob = "tpcc.verify";
inline constexpr const char* kSurveyJob = "tpcc.survey";

/// Input of all jobs; every worker gets the same text.
struct JobInput {
  uint32_t warehouses = 1;
  uint64_t load_seed = 1;
  Scale scale;

  // The members below are for tpcc.run.
  uint64_t seed = 1;
  uint32_t remote_line_percent = 1;
  uint32_t remote_payment_percent = 15;
  std::array<uint32_t, kTransactionTypes> mix = {45, 43, 4, 4, 4};
  double think_scale = 0;  // factor of keying and think times (terminals.h); 0: none
  bench::RunTimes times;

  std::string to_json() const;
  static Result<JobInput> parse(std::string_view text);
  Workload workload() const;
};

/// Returns the numbers of the warehouses on `node`. Warehouse w, of 1 to `warehouses`, is on node
/// (w - 1) mod nodes.
std::vector<uint32_t> warehouses_of_node(uint32_t warehouses, uint32_t node, uint32_t nodes);

/// Returns the warehouses that a worker owns. The workers of a node take its warehouses in turn, so
/// each warehouse has one owner.
std::vector<uint32_t> owned_warehouses(uint32_t warehouses, uint32_t node, uint32_t nodes,
                                       uint32_t worker, uint32_t workers);

/// Returns the warehouses that a worker serves in a run. A worker without a warehouse of its own
/// serves a warehouse of another worker. Returns an empty list only if the node has no warehouse.
std::vector<uint32_t> served_warehouses(uint32_t warehouses, uint32_t node, uint32_t nodes,
                                        uint32_t worker, uint32_t workers);

}  // namespace atolldb::tpcc
