// The report for programs. Keys are added, never renamed or removed; bench/README.md lists them.
#include <nlohmann/json.hpp>

#include "bench/tpcc_driver/report.h"

namespace atolldb::tpcc {

namespace {

constexpr int kSchemaVersion = 1;

nlohmann::json latency_json(const RunSummary& run) {
  nlohmann::json json;
  for (uint32_t type = 0; type < kTransactionTypes; ++type) {
    const bench::LatencyHistogram& latency = run.latency[type];
    const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
    json[kTransactionNames[type]] = {{"p50", us(latency.quantile_ns(0.5))},
                                     {"p95", us(latency.quantile_ns(0.95))},
                                     {"p99", us(latency.quantile_ns(0.99))},
                                     {"p99.9", us(latency.quantile_ns(0.999))},
                                     {"max", us(latency.max_ns())}};
  }
  return json;
}

/// By reason; what users rolled back is counted apart.
nlohmann::json aborts_json(const EngineCounts& engine) {
  auto json = nlohmann::json::object();
  for (uint32_t i = 0; i < kStatusCount; ++i) {
    const auto reason = static_cast<Status>(i);
    if (!is_abort(reason) || reason == Status::user_abort) continue;
    json[std::string(to_string(reason))] = engine.aborts[i];
  }
  return json;
}

nlohmann::json engine_json(const EngineCounts& engine) {
  return {{"local_accesses", engine.local_accesses},   {"remote_accesses", engine.remote_accesses},
          {"local_locks", engine.local_locks},         {"remote_locks", engine.remote_locks},
          {"pages_allocated", engine.pages_allocated}, {"splits", engine.splits},
          {"compactions", engine.compactions},         {"merges", engine.merges}};
}

nlohmann::json run_json(const RunSummary& run) {
  nlohmann::json json = engine_json(run.engine);
  json["throughput_tps"] = run.tps;
  json["seconds"] = run.seconds;
  json["user_rollbacks"] = run.user_aborts;
  json["delivered_orders"] = run.delivered_orders;
  json["skipped_deliveries"] = run.skipped_deliveries;
  json["aborts"] = aborts_json(run.engine);
  json["latency_us"] = latency_json(run);
  json["ended_early"] =
      run.ended_early.empty() ? nlohmann::json() : nlohmann::json(run.ended_early);
  for (uint32_t type = 0; type < kTransactionTypes; ++type) {
    json["types"][kTransactionNames[type]] = {{"committed", run.commits[type]},
                                              {"throughput_tps", run.tps_of_type[type]}};
  }
  for (uint32_t node = 0; node < run.nodes.size(); ++node) {
    nlohmann::json entry = engine_json(run.nodes[node].engine);
    entry["node"] = node;
    entry["throughput_tps"] = run.nodes[node].tps;
    json["per_node"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::json config_json(const Report& report) {
  const Options& options = report.options;
  return {{"nodes", report.nodes},
          {"workers", report.workers},
          {"mode", report.mode},
          {"warehouses", report.warehouses},
          {"seconds", options.seconds},
          {"warmup", options.warmup_seconds},
          {"repeat", options.repeat},
          {"remote_percent", options.remote_percent},
          {"remote_payment_percent", options.remote_payment_percent},
          {"mix", format_mix(options.mix)},
          {"seed", options.seed},
          {"durability", options.durability}};
}

}  // namespace

nlohmann::json Report::json() const {
  const RunSummary& run = median_run();
  nlohmann::json json{{"schema_version", kSchemaVersion},
                      {"benchmark", "tpcc"},
                      {"throughput_tps", median_tps()},
                      {"durability", options.durability},
                      {"nodes", nodes},
                      {"aborts", aborts_json(run.engine)},
                      {"user_rollbacks", run.user_aborts},
                      {"local_accesses", run.engine.local_accesses},
                      {"remote_accesses", run.engine.remote_accesses},
                      {"latency_us", latency_json(run)},
                      {"config", config_json(*this)},
                      {"load_seconds", load_seconds},
                      {"verified", verify_done && violations.empty()},
                      {"verify_done", verify_done},
                      {"violations", violations},
                      {"ended_early", ended_early()}};
  for (const auto& each : runs) json["runs"].push_back(run_json(*each));
  json["machine"] = {{"cpu", machine.cpu},
                     {"cores", machine.cores},
                     {"memory_bytes", machine.memory_bytes},
                     {"kernel", machine.kernel},
                     {"pool_page_bytes", pool_page_bytes}};
  json["storage_bytes"] = nlohmann::json::object();
  for (const auto& [name, bytes] : storage_bytes) json["storage_bytes"][name] = bytes;
  json["pools"] = nlohmann::json::array();
  for (const PoolUse& pool : pools) {
    json["pools"].push_back(
        {{"node", pool.node}, {"bytes", pool.bytes}, {"used_bytes", pool.used_bytes}});
  }
  return json;
}

}  // namespace atolldb::tpcc
