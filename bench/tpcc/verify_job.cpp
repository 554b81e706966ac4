// Job "tpcc.verify": each worker checks conditions 1-12 of clause 3.3.2 for its own warehouses.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/tpcc/collect.h"
#include "bench/tpcc/conditions.h"
#include "bench/tpcc/job_input.h"
#include "shared/base/try.h"
#include "soc/procedure/procedure.h"

namespace atolldb::tpcc {

namespace {

Result<std::string> verify(JobContext& context) {
  ATOLL_ASSIGN(const JobInput input, JobInput::parse(context.input()));
  ATOLL_ASSIGN(const Tables tables, Tables::open(context.control(), input.scale, input.warehouses));
  const std::vector<uint32_t> own =
      owned_warehouses(input.warehouses, context.node(), context.node_count(),
                       context.worker_ordinal(), context.workers_on_node());
  std::vector<WarehouseFacts> facts;
  FactCollector collector(context.transaction(), context.backoff(), tables);
  const Status status = own.empty() ? Status::ok : collector.collect(own, facts);
  if (status != Status::ok) {
    return make_error(ExitCode::failed,
                      fmt::format("tpcc: verify on node {}: {}: the database could not be read",
                                  context.node(), to_string(status)));
  }
  Violations violations;
  for (const WarehouseFacts& warehouse : facts) {
    check_conditions(warehouse, input.scale, violations);
  }
  nlohmann::json json{{"warehouses", own.size()}, {"violations", nlohmann::json::array()}};
  for (const Violation& violation : violations.kept()) {
    json["violations"].push_back({{"condition", violation.condition},
                                  {"count", violations.count(violation.condition)},
                                  {"message", violation.message}});
  }
  return json.dump();
}

ATOLL_REGISTER_JOB(kVerify, kVerifyJob, verify);

}  // namespace

}  // namespace atolldb::tpcc
