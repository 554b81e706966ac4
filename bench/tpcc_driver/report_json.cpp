// The JSON report. Keys are added, never renamed or removed; bench/README.md lists them.
#include <nlohmann/json.hpp>

#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

namespace {

nlohmann::json run_json(const RunSummary& run) {
  nlohmann::json json = bench::run_json(run, kTransactionNames, true);
  json["user_rollbacks"] = run.user_aborts;
  json["delivered_orders"] = run.delivered_orders;
  json["skipped_deliveries"] = run.skipped_deliveries;
  return json;
}

}  // namespace

nlohmann::json Report::json() const {
  const RunSummary& run = median_run();
  nlohmann::json json =
      bench::report_json(*this, options, median_tps(), run, kTransactionNames, true,
                         {{"warehouses", warehouses},
                          {"remote_percent", options.remote_percent},
                          {"remote_payment_percent", options.remote_payment_percent},
                          {"mix", format_mix(options.mix)},
                          {"loaded_lines", options.scale.max_lines},
                          {"cold", options.cold}});
  json["benchmark"] = "tpcc";
  json["user_rollbacks"] = run.user_aborts;
  json["ended_early"] = ended_early();
  for (const auto& each : runs) json["runs"].push_back(run_json(*each));
  return json;
}

}  // namespace atolldb::tpcc
