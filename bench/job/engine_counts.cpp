#include "bench/job/engine_counts.h"

#include <nlohmann/json.hpp>

namespace atolldb::bench {

std::span<const EngineCounts::Counter> EngineCounts::counters() {
  static constexpr Counter kCounters[] = {
      {"local_accesses", &EngineCounts::local_accesses},
      {"remote_accesses", &EngineCounts::remote_accesses},
      {"local_locks", &EngineCounts::local_locks},
      {"remote_locks", &EngineCounts::remote_locks},
      {"pages_allocated", &EngineCounts::pages_allocated},
      {"splits", &EngineCounts::splits},
      {"compactions", &EngineCounts::compactions},
      {"merges", &EngineCounts::merges},
      {"log_bytes", &EngineCounts::log_bytes},
      {"log_stalls", &EngineCounts::log_stalls},
  };
  return kCounters;
}

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
  counts.log_bytes = metrics.log_bytes.get();
  counts.log_stalls = metrics.log_stalls.get();
  return counts;
}

EngineCounts EngineCounts::since(const EngineCounts& before) const {
  EngineCounts difference = *this;
  for (uint32_t i = 0; i < kStatusCount; ++i) difference.aborts[i] -= before.aborts[i];
  for (const auto& [name, member] : counters()) difference.*member -= before.*member;
  return difference;
}

void EngineCounts::add(const EngineCounts& other) {
  for (uint32_t i = 0; i < kStatusCount; ++i) aborts[i] += other.aborts[i];
  for (const auto& [name, member] : counters()) this->*member += other.*member;
}

void EngineCounts::put(nlohmann::json& json) const {
  for (const auto& [name, member] : counters()) json[name] = this->*member;
}

void EngineCounts::take(const nlohmann::json& json) {
  for (const auto& [name, member] : counters()) json.at(name).get_to(this->*member);
}

}  // namespace atolldb::bench
