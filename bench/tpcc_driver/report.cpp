#include "bench/tpcc_driver/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench/tpcc/terminals.h"

namespace atolldb::tpcc {
namespace {

nlohmann::json run_json(const RunSummary& run) {
  nlohmann::json json = bench::run_json(run, kTransactionNames, true);
  json["user_rollbacks"] = run.user_aborts;
  json["delivered_orders"] = run.delivered_orders;
  json["skipped_deliveries"] = run.skipped_deliveries;
  return json;
}

/// Returns the line about terminals. Their latencies begin when the keying time has passed.
std::string think_time_text(const Report& report, const RunSummary& run) {
  const double per_minute =
      60 * run.tps_of_type[static_cast<size_t>(TransactionType::new_order)] / report.warehouses;
  const bench::ClientOptions& clients = report.options.clients;
  const double most = kMaxTpmcPerWarehouse / report.options.think_scale;
  if (!clients.is_used()) {
    return fmt::format(
        "think times x {}: {} terminals per warehouse; {:.2f} New-Orders per minute and warehouse "
        "(at most {:.2f})\n",
        report.options.think_scale, kTerminalsPerWarehouse, per_minute, most);
  }
  // Each request that a client may have in flight is a terminal.
  const double terminals =
      double{1} * clients.pipeline * (clients.clients == 0 ? report.workers : clients.clients);
  const double per_warehouse = terminals / report.warehouses;
  return fmt::format(
      "think times x {}: {} terminals in all; {:.2f} New-Orders per minute and warehouse (at most "
      "{:.2f})\n",
      report.options.think_scale, terminals, per_minute,
      most * per_warehouse / kTerminalsPerWarehouse);
}

}  // namespace

std::string Report::text() const {
  const RunSummary& run = median_run();
  std::string out = bench::headline_text(
      *this, options, median_tps(), runs.size(),
      fmt::format("{} warehouses{}", warehouses, options.cold ? " in a snapshot" : ""));
  out += bench::clients_text(options.clients, workers);
  if (options.think_scale != 0) out += think_time_text(*this, run);
  out += bench::nodes_text(*this, run);
  out += bench::types_text(run, kTransactionNames, true);
  out += bench::durable_text(run, kTransactionNames);
  out += fmt::format(
      "  rolled back by the user (unused item): {}; districts with nothing to "
      "deliver: {}\n",
      bench::format_count(run.user_aborts), bench::format_count(run.skipped_deliveries));
  out += bench::aborts_text(run) + bench::memory_text(*this);
  for (const auto& each : runs) out += bench::early_end_text(*each);
  return out + bench::verify_text(
                   *this, fmt::format("consistency conditions 1-12 hold for all {} warehouses",
                                      warehouses));
}

nlohmann::json Report::json() const {
  const RunSummary& run = median_run();
  nlohmann::json json =
      bench::report_json(*this, options, median_tps(), run, kTransactionNames, true,
                         {{"warehouses", warehouses},
                          {"remote_percent", options.remote_percent},
                          {"remote_payment_percent", options.remote_payment_percent},
                          {"mix", format_mix(options.mix)},
                          {"loaded_lines", options.scale.max_lines},
                          {"hash_orders", options.scale.hash_orders},
                          {"cold", options.cold},
                          {"think_time", options.think_scale}});
  bench::put_clients(options.clients, json["config"]);
  json["benchmark"] = "tpcc";
  json["user_rollbacks"] = run.user_aborts;
  json["ended_early"] = ended_early();
  for (const auto& each : runs) json["runs"].push_back(run_json(*each));
  return json;
}

}  // namespace atolldb::tpcc
