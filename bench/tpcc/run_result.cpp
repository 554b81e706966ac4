#include "bench/tpcc/run_result.h"

#include <nlohmann/json.hpp>
#include <numeric>

namespace atolldb::tpcc {

namespace {

/// The counters beside `aborts`, by name.
constexpr std::pair<const char*, uint64_t EngineCounts::*> kCounters[] = {
    {"local_accesses", &EngineCounts::local_accesses},
    {"remote_accesses", &EngineCounts::remote_accesses},
    {"local_locks", &EngineCounts::local_locks},
    {"remote_locks", &EngineCounts::remote_locks},
    {"pages_allocated", &EngineCounts::pages_allocated},
    {"splits", &EngineCounts::splits},
    {"compactions", &EngineCounts::compactions},
    {"merges", &EngineCounts::merges},
};

}  // namespace

EngineCounts EngineCounts::read(const WorkerMetrics& metrics) {
  EngineCounts counts;
  for (uint32_t i = 0; i < kStatusCount; ++i) counts.aborts[i] = metrics.aborts[i].get();
  counts.local_accesses = metrics.local_accesses.get();
  counts.remote_accesses = metrics.remote_accesses.get();
  counts.local_locks = metrics.local_locks.get();
  counts.remote_locks = metrics.remote_locks.get();
  counts.pages_allocated = metrics.pages_allocated.get();
  counts.splits = metrics.splits.get();
  counts.compactions = metrics.compactions.get();
  counts.merges = metrics.merges.get();
  return counts;
}

EngineCounts EngineCounts::since(const EngineCounts& before) const {
  EngineCounts difference = *this;
  for (uint32_t i = 0; i < kStatusCount; ++i) difference.aborts[i] -= before.aborts[i];
  for (const auto& [name, member] : kCounters) difference.*member -= before.*member;
  return difference;
}

void EngineCounts::add(const EngineCounts& other) {
  for (uint32_t i = 0; i < kStatusCount; ++i) aborts[i] += other.aborts[i];
  for (const auto& [name, member] : kCounters) this->*member += other.*member;
}

uint64_t RunResult::total_commits() const {
  return std::accumulate(commits.begin(), commits.end(), uint64_t{0});
}

std::string RunResult::to_json() const {
  nlohmann::json json{{"node", node},
                      {"worker", worker},
                      {"seconds", seconds},
                      {"commits", commits},
                      {"user_aborts", user_aborts},
                      {"delivered_orders", delivered_orders},
                      {"skipped_deliveries", skipped_deliveries},
                      {"ended_early", ended_early},
                      {"aborts", engine.aborts}};
  for (const auto& [name, member] : kCounters) json[name] = engine.*member;
  for (const bench::LatencyHistogram& histogram : latency) {
    json["latency"].push_back({{"max_ns", histogram.max_ns()}, {"buckets", histogram.sparse()}});
  }
  return json.dump();
}

Result<RunResult> RunResult::parse(std::string_view text) {
  RunResult result;
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("node").get_to(result.node);
    json.at("worker").get_to(result.worker);
    json.at("seconds").get_to(result.seconds);
    json.at("commits").get_to(result.commits);
    json.at("user_aborts").get_to(result.user_aborts);
    json.at("delivered_orders").get_to(result.delivered_orders);
    json.at("skipped_deliveries").get_to(result.skipped_deliveries);
    json.at("ended_early").get_to(result.ended_early);
    json.at("aborts").get_to(result.engine.aborts);
    for (const auto& [name, member] : kCounters) json.at(name).get_to(result.engine.*member);
    for (uint32_t type = 0; type < kTransactionTypes; ++type) {
      const auto& latency = json.at("latency").at(type);
      result.latency[type].restore(
          latency.at("buckets").get<std::vector<std::pair<uint32_t, uint64_t>>>(),
          latency.at("max_ns").get<uint64_t>());
    }
  } catch (const nlohmann::json::exception& error) {
    return make_error(ExitCode::failed,
                      std::string("tpcc: a worker's result cannot be read: ") + error.what());
  }
  return result;
}

}  // namespace atolldb::tpcc
