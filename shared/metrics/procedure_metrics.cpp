#include "shared/metrics/procedure_metrics.h"

#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "shared/base/base64.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

/// Returns the number of rows: those of procedures with statistics of their own, and the shared
/// one.
uint64_t count_rows(std::span<const std::string> names) {
  return std::min<uint64_t>(names.size(), ProcedureMetrics::kMaxProcedures) + 1;
}

struct NamedTotals {
  std::string_view name;
  ProcedureTotals totals;
};

std::vector<NamedTotals> called_procedures(const ProcedureMetrics& procedures) {
  std::vector<NamedTotals> called;
  for (uint32_t row = 0; row < procedures.row_count(); ++row) {
    const ProcedureTotals totals = procedures.totals(row);
    if (totals.calls() != 0) called.push_back({procedures.row_name(row), totals});
  }
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
    : workers_(workers), counts_((uint64_t{workers} + 1) * count_rows(names)) {
  CHECK(names.size() <= UINT32_MAX);
  const auto has_own_row = [](const std::string& name) { return name != kOther && is_utf8(name); };
  for (const std::string& name : names) {
    CHECK(!name.empty());  // no label may be empty
    if (row_names_.size() < kMaxProcedures && has_own_row(name)) {
      row_of_.push_back(row_count());
      row_names_.push_back(name);
    } else {
      row_of_.push_back(UINT32_MAX);
    }
  }
  std::ranges::replace(row_of_, UINT32_MAX, row_count());
  row_names_.emplace_back(kOther);
  CHECK(row_names_.size() <= count_rows(names));
}

ProcedureTotals ProcedureMetrics::totals(uint32_t row) const {
  CHECK(row < row_count());
  ProcedureTotals totals;
  for (uint32_t thread = 0; thread <= workers_; ++thread) {
    const ProcedureCounts& counts = counts_[uint64_t{thread} * row_count() + row];
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
