#include "bench/driver/histogram_file.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace atolldb::bench {
namespace {

/// Calls `visit(type, stage, histogram)` for each histogram that has values.
template <typename Visit>
void for_each_histogram(const RunSummary& run, TypeNames names, Visit visit) {
  for (size_t type = 0; type < names.size(); ++type) {
    if (run.latency[type].count() != 0) visit(names[type], "commit", run.latency[type]);
    if (run.durable_latency[type].count() != 0) {
      visit(names[type], "durable", run.durable_latency[type]);
    }
  }
}

/// Returns the largest value of a bucket.
uint64_t last_of(uint32_t bucket) { return HistogramBuckets::lower(bucket + 1) - 1; }

std::string histograms_csv(const RunSummary& run, TypeNames names) {
  std::string text = "type,stage,first_ns,last_ns,count\n";
  for_each_histogram(run, names, [&](const char* type, const char* stage, const auto& histogram) {
    for (const auto& [bucket, count] : histogram.sparse()) {
      text += fmt::format("{},{},{},{},{}\n", type, stage, HistogramBuckets::lower(bucket),
                          last_of(bucket), count);
    }
  });
  return text;
}

nlohmann::json histograms_json(const std::string& benchmark, const RunSummary& run,
                               TypeNames names) {
  auto list = nlohmann::json::array();
  for_each_histogram(run, names, [&](const char* type, const char* stage, const auto& histogram) {
    auto buckets = nlohmann::json::array();
    for (const auto& [bucket, count] : histogram.sparse()) {
      buckets.push_back({HistogramBuckets::lower(bucket), last_of(bucket), count});
    }
    list.push_back({{"type", type},
                    {"stage", stage},
                    {"count", histogram.count()},
                    {"max_ns", histogram.max_ns()},
                    {"buckets", std::move(buckets)}});
  });
  return {{"schema_version", 1},
          {"benchmark", benchmark},
          {"seconds", run.seconds},
          {"bucket", "[first_ns, last_ns, count]"},
          {"histograms", std::move(list)}};
}

}  // namespace

std::string histograms_text(const std::string& path, const std::string& benchmark,
                            const RunSummary& run, TypeNames names) {
  if (path.ends_with(".csv")) return histograms_csv(run, names);
  return histograms_json(benchmark, run, names).dump() + "\n";
}

}  // namespace atolldb::bench
