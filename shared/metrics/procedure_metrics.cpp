#include "shared/metrics/procedure_metrics.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "shared/base/base64.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

struct NamedTotals {
  std::string_view name;
  ProcedureTotals totals;
};

std::vector<NamedTotals> called_procedures(const ProcedureMetrics& procedures) {
  std::vector<NamedTotals> called;
  const auto add = [&](uint32_t row) {
    const ProcedureTotals totals = procedures.totals(row);
    if (totals.calls() != 0) called.push_back({procedures.row_name(row), totals});
  };
  const uint32_t named = procedures.named_rows();
  for (uint32_t row = 0; row < named; ++row) add(row);
  add(ProcedureMetrics::kSharedRow);
  return called;
}

/// Adds a family with a sample for each procedure.
void add_counter(MetricFamilies& families, const std::vector<NamedTotals>& called, const char* name,
                 const char* help, uint64_t (*value)(const ProcedureTotals&)) {
  families.counter(name, help);
  for (const auto& [procedure, totals] : called) {
    families.sample(value(totals), {{"procedure", std::string(procedure)}});
  }
}

void add_latencies(MetricFamilies& families, const NamedTotals& procedure, const char* stage,
                   const LatencyTotals& latencies) {
  families.sample(latencies.counts, LatencyCounts::kBoundsNs, latencies.sum_ns,
                  {{"procedure", std::string(procedure.name)}, {"stage", stage}});
}

nlohmann::json latencies_json(const LatencyTotals& latencies) {
  return {{"counts", latencies.counts}, {"sum_ns", latencies.sum_ns}};
}

}  // namespace

void LatencyTotals::add(const LatencyCounts& other) {
  for (uint32_t i = 0; i < LatencyCounts::kBuckets; ++i) counts[i] += other.count(i);
  sum_ns += other.sum_ns();
}

uint64_t ProcedureTotals::calls() const {
  return std::accumulate(results.begin(), results.end(), uint64_t{0});
}

ProcedureMetrics::ProcedureMetrics(std::span<const std::string> names, uint32_t workers)
    : workers_(workers), counts_((uint64_t{workers} + 1) * kRowsPerThread) {
  for (auto& row : row_of_) row.store(kSharedRow, std::memory_order_relaxed);
  add_names(names);
}

void ProcedureMetrics::add_names(std::span<const std::string> names) {
  CHECK(names.size() >= known_names_ && names.size() <= UINT32_MAX);
  const auto has_own_row = [](const std::string& name) { return name != kOther && is_utf8(name); };
  uint32_t rows = named_rows_.load(std::memory_order_relaxed);
  for (; known_names_ < names.size(); ++known_names_) {
    const std::string& name = names[known_names_];
    CHECK(!name.empty());  // no label may be empty
    const bool has_room = rows < kMaxProcedures && known_names_ < row_of_.size();
    if (!has_room || !has_own_row(name)) continue;
    DCHECK(row_names_[rows].empty());  // no reader has seen it
    row_names_[rows] = name;
    row_of_[known_names_].store(rows, std::memory_order_relaxed);
    ++rows;
  }
  DCHECK(rows <= kMaxProcedures && known_names_ == names.size());
  // Release pairs with the acquire of named_rows.
  named_rows_.store(rows, std::memory_order_release);
}

std::string_view ProcedureMetrics::row_name(uint32_t row) const {
  CHECK(row < named_rows() || row == kSharedRow);
  return row == kSharedRow ? kOther : std::string_view(row_names_[row]);
}

ProcedureTotals ProcedureMetrics::totals(uint32_t row) const {
  CHECK(row < named_rows() || row == kSharedRow);
  ProcedureTotals totals;
  for (uint32_t thread = 0; thread <= workers_; ++thread) {
    const ProcedureCounts& counts = counts_[uint64_t{thread} * kRowsPerThread + row];
    for (uint32_t i = 0; i < kStatusCount; ++i) totals.results[i] += counts.results[i].get();
    totals.retries += counts.retries.get();
    totals.execution.add(counts.execution);
    totals.durable.add(counts.durable);
  }
  return totals;
}

void add_procedures(MetricFamilies& families, const ProcedureMetrics& procedures) {
  const std::vector<NamedTotals> called = called_procedures(procedures);
  if (called.empty()) return;
  constexpr auto kOk = static_cast<uint32_t>(Status::ok);
  add_counter(families, called, "atoll_procedure_commits_total",
              "Calls of procedures that have committed.",
              [](const ProcedureTotals& totals) { return totals.results[kOk]; });
  add_counter(families, called, "atoll_procedure_retries_total",
              "Attempts of calls of procedures after their first one.",
              [](const ProcedureTotals& totals) { return totals.retries; });
  families.counter("atoll_procedure_aborts_total",
                   "Calls of procedures that have not committed, by their final status.");
  for (const auto& [procedure, totals] : called) {
    // Results like not_found are reasons, too: they roll back a procedure that returns them.
    for (uint32_t reason = kOk + 1; reason < kStatusCount; ++reason) {
      families.sample(totals.results[reason],
                      {{"procedure", std::string(procedure)},
                       {"reason", std::string(to_string(static_cast<Status>(reason)))}});
    }
  }
  families.histogram("atoll_procedure_seconds",
                     "Time of calls of procedures, also of those that abort, by stage. execution: "
                     "on the worker, with all attempts. durable: from the arrival of the request "
                     "until its durable answer.");
  for (const NamedTotals& procedure : called) {
    add_latencies(families, procedure, "execution", procedure.totals.execution);
    add_latencies(families, procedure, "durable", procedure.totals.durable);
  }
}

nlohmann::json procedure_counts_json(const ProcedureMetrics& procedures) {
  auto list = nlohmann::json::array();
  for (const auto& [name, totals] : called_procedures(procedures)) {
    auto results = nlohmann::json::object();
    for (uint32_t i = 0; i < kStatusCount; ++i) {
      if (totals.results[i] == 0) continue;
      results[std::string(to_string(static_cast<Status>(i)))] = totals.results[i];
    }
    list.push_back({{"name", std::string(name)},
                    {"results", std::move(results)},
                    {"retries", totals.retries},
                    {"execution", latencies_json(totals.execution)},
                    {"durable", latencies_json(totals.durable)}});
  }
  return {{"bounds_ns", LatencyCounts::kBoundsNs}, {"procedures", std::move(list)}};
}

}  // namespace atolldb
