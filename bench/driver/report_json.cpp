// The JSON parts of a report.
#include <nlohmann/json.hpp>

#include "bench/driver/report.h"

namespace atolldb::bench {

namespace {

nlohmann::json quantiles_json(const LatencyHistogram& latency) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  return {{"p50", us(latency.quantile_ns(0.5))},
          {"p95", us(latency.quantile_ns(0.95))},
          {"p99", us(latency.quantile_ns(0.99))},
          {"p99.9", us(latency.quantile_ns(0.999))},
          {"max", us(latency.max_ns())}};
}

}  // namespace

nlohmann::json latency_json(const RunSummary& run, const std::vector<LatencyHistogram>& latency,
                            TypeNames names, bool with_idle) {
  nlohmann::json json;
  for (uint32_t type = 0; type < names.size(); ++type) {
    if (!with_idle && run.commits[type] == 0) continue;
    json[names[type]] = quantiles_json(latency[type]);
  }
  return json;
}

nlohmann::json all_latency_json(const std::vector<LatencyHistogram>& latency) {
  return quantiles_json(merged(latency));
}

nlohmann::json aborts_json(const EngineCounts& engine) {
  auto json = nlohmann::json::object();
  for (uint32_t i = 0; i < kStatusCount; ++i) {
    const auto reason = static_cast<Status>(i);
    if (!is_abort(reason) || reason == Status::user_abort) continue;
    json[std::string(to_string(reason))] = engine.aborts[i];
  }
  return json;
}

nlohmann::json run_json(const RunSummary& run, TypeNames names, bool with_idle) {
  nlohmann::json json;
  run.engine.put(json);
  json["throughput_tps"] = run.tps;
  json["seconds"] = run.seconds;
  json["per_second_tps"] = run.per_second;
  const uint64_t longest_pause_ns = longest_pause(run.pauses.value_or(Pauses()));
  json["longest_pause_ms"] = static_cast<double>(longest_pause_ns) * 1e-6;
  json["aborts"] = aborts_json(run.engine);
  json["latency_us"] = latency_json(run, run.latency, names, with_idle);
  json["all_latency_us"] = all_latency_json(run.latency);
  if (run.log_wait.count() != 0) {
    json["durable_latency_us"] = latency_json(run, run.durable_latency, names, with_idle);
    json["all_durable_latency_us"] = all_latency_json(run.durable_latency);
    json["epoch_wait_us"] = quantiles_json(run.epoch_wait);
    json["log_wait_us"] = quantiles_json(run.log_wait);
    json["epoch_stages_us"] = nlohmann::json::object();
    for (const EpochStages::Stage& stage : run.stages.stages) {
      json["epoch_stages_us"][stage.name] = quantiles_json(stage.times);
    }
    json["slowest_epoch"] = run.stages.slowest_epoch;
  }
  json["ended_early"] =
      run.ended_early.empty() ? nlohmann::json() : nlohmann::json(run.ended_early);
  for (uint32_t type = 0; type < names.size(); ++type) {
    if (!with_idle && run.commits[type] == 0) continue;
    json["types"][names[type]] = {{"committed", run.commits[type]},
                                  {"throughput_tps", run.tps_of_type[type]}};
  }
  for (uint32_t node = 0; node < run.nodes.size(); ++node) {
    nlohmann::json entry;
    run.nodes[node].engine.put(entry);
    entry["node"] = node;
    entry["throughput_tps"] = run.nodes[node].tps;
    json["per_node"].push_back(std::move(entry));
  }
  return json;
}

nlohmann::json report_json(const ReportHead& head, const CommonOptions& options, double tps,
                           const RunSummary& run, TypeNames names, bool with_idle,
                           nlohmann::json config) {
  config["nodes"] = head.nodes;
  config["workers"] = head.workers;
  config["mode"] = head.mode;
  config["seconds"] = options.seconds;
  config["warmup"] = options.warmup_seconds;
  config["repeat"] = options.repeat;
  config["seed"] = options.seed;
  config["durability"] = head.durability;
  nlohmann::json json{{"schema_version", kReportSchemaVersion},
                      {"throughput_tps", tps},
                      {"durability", head.durability},
                      {"nodes", head.nodes},
                      {"aborts", aborts_json(run.engine)},
                      {"local_accesses", run.engine.local_accesses},
                      {"remote_accesses", run.engine.remote_accesses},
                      {"latency_us", latency_json(run, run.latency, names, with_idle)},
                      {"config", std::move(config)},
                      {"load_seconds", head.load_seconds},
                      {"verified", head.verified()},
                      {"verify_done", head.verify_done},
                      {"violations", head.violations}};
  json["machine"] = {{"cpu", head.machine.cpu},
                     {"cores", head.machine.cores},
                     {"memory_bytes", head.machine.memory_bytes},
                     {"kernel", head.machine.kernel},
                     {"pool_page_bytes", head.pool_page_bytes}};
  json["storage_bytes"] = nlohmann::json::object();
  for (const auto& [name, bytes] : head.storage_bytes) json["storage_bytes"][name] = bytes;
  json["pools"] = nlohmann::json::array();
  for (const PoolUse& pool : head.pools) {
    json["pools"].push_back(
        {{"node", pool.node}, {"bytes", pool.bytes}, {"used_bytes", pool.used_bytes}});
  }
  return json;
}

ExitCode exit_code_of(const ReportHead& head, bool ended_early) {
  if (!head.violations.empty()) return ExitCode::corruption;
  return ended_early ? ExitCode::resources : ExitCode::success;
}

}  // namespace atolldb::bench
