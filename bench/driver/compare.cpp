#include "bench/driver/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <vector>

#include "bench/common/random.h"
#include "bench/driver/options.h"
#include "bench/driver/report.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb::bench {
namespace {

double mean_of(std::span<const double> samples) {
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

/// Returns the mean of as many samples, drawn in blocks of neighbours. The last sample is followed
/// by the first, so that all samples have the same probability.
double resampled_mean(std::span<const double> samples, Random& random) {
  const size_t count = samples.size();
  const auto block = static_cast<size_t>(std::ceil(std::cbrt(static_cast<double>(count))));
  double sum = 0;
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    at = i % block == 0 ? random.next() % count : (at + 1) % count;
    sum += samples[at];
  }
  return sum / static_cast<double>(count);
}

/// Returns the samples of all runs of a report.
std::vector<double> samples_of(const nlohmann::json& report) {
  std::vector<double> samples;
  for (const auto& run : report.value("runs", nlohmann::json::array())) {
    for (const auto& sample : run.value("per_second_tps", nlohmann::json::array())) {
      if (sample.is_number()) samples.push_back(sample.get<double>());
    }
  }
  return samples;
}

std::string percent_text(double share) { return fmt::format("{:+.1f} %", 100 * share); }

/// Returns the lines about the latencies of the types that both reports have.
std::string latencies_text(const nlohmann::json& before, const nlohmann::json& after) {
  std::string text;
  const auto old = before.value("latency_us", nlohmann::json::object());
  const auto now = after.value("latency_us", nlohmann::json::object());
  for (const auto& [type, quantiles] : now.items()) {
    if (!old.contains(type)) continue;
    text += fmt::format("  {:<18}", type);
    for (const char* name : {"p50", "p99", "p99.9"}) {
      const double was = old[type].value(name, 0.0);
      const double is = quantiles.value(name, 0.0);
      text += fmt::format(" {} {:.1f} -> {:.1f} us ({})", name, was, is,
                          was > 0 ? percent_text(is / was - 1) : "-");
    }
    text += "\n";
  }
  return text;
}

/// Returns the options that differ, because they explain a change.
std::string differences_text(const nlohmann::json& before, const nlohmann::json& after) {
  std::string text;
  const auto old = before.value("config", nlohmann::json::object());
  const auto now = after.value("config", nlohmann::json::object());
  for (const auto& [key, value] : now.items()) {
    if (old.contains(key) && old[key] == value) continue;
    text += fmt::format("{}{}: {} -> {}", text.empty() ? "" : ", ", key,
                        old.contains(key) ? old[key].dump() : "-", value.dump());
  }
  const auto cpu = [](const nlohmann::json& report) {
    return report.value("machine", nlohmann::json::object()).value("cpu", "");
  };
  if (cpu(before) != cpu(after)) text += (text.empty() ? "" : ", ") + std::string("other machine");
  return text.empty() ? "" : "  options that differ: " + text + "\n";
}

}  // namespace

Change change_of_means(std::span<const double> before, std::span<const double> after) {
  CHECK(before.size() >= kMinSamples && after.size() >= kMinSamples);
  const double mean = mean_of(before);
  CHECK(mean > 0);
  Random random(1);
  std::vector<double> changes(kResamples);
  for (double& change : changes) {
    const double old = resampled_mean(before, random);
    change = old > 0 ? resampled_mean(after, random) / old - 1 : 0;
  }
  std::ranges::sort(changes);
  const auto quantile = [&](double share) {
    return changes[static_cast<size_t>(share * static_cast<double>(changes.size() - 1))];
  };
  constexpr double kTail = (1 - kConfidence) / 2;
  return {mean_of(after) / mean - 1, quantile(kTail), quantile(1 - kTail)};
}

Result<nlohmann::json> read_report(const std::string& path) {
  std::ifstream file(path);
  auto json = nlohmann::json::parse(file, nullptr, false);
  const bool is_report = json.is_object() && json.contains("benchmark") &&
                         json.value("runs", nlohmann::json()).is_array();
  if (file.is_open() && is_report) return json;
  return make_error(ExitCode::usage, "--compare " + path +
                                         ": is no report of a benchmark: give a file that --json "
                                         "has written");
}

Result<std::string> compare_text(const nlohmann::json& before, const nlohmann::json& after,
                                 const std::string& path) {
  if (before.value("benchmark", "") != after.value("benchmark", "")) {
    return make_error(ExitCode::usage, "--compare " + path + ": is a report of bench " +
                                           before.value("benchmark", "") + ": give one of bench " +
                                           after.value("benchmark", ""));
  }
  const std::vector<double> old = samples_of(before);
  const std::vector<double> now = samples_of(after);
  if (old.size() < kMinSamples || now.size() < kMinSamples) {
    return make_error(ExitCode::usage,
                      fmt::format("--compare {}: {} and {} samples of one second are too few: both "
                                  "reports need at least {}: raise --seconds or --repeat",
                                  path, old.size(), now.size(), kMinSamples));
  }
  if (mean_of(old) <= 0) {
    return make_error(ExitCode::usage, "--compare " + path + ": nothing was committed in that run");
  }
  const Change change = change_of_means(old, now);
  const bool is_certain = change.low > 0 || change.high < 0;
  return fmt::format(
             "compared with {}: {} -> {} transactions/s: {}, {:.0f} % interval {} to {}{}\n"
             "  (moving-block bootstrap over {} and {} seconds: it covers the variation within "
             "runs, not between them)\n",
             path, format_rate(mean_of(old)), format_rate(mean_of(now)),
             percent_text(change.relative), 100 * kConfidence, percent_text(change.low),
             percent_text(change.high), is_certain ? "" : ": no change is shown", old.size(),
             now.size()) +
         latencies_text(before, after) + differences_text(before, after);
}

}  // namespace atolldb::bench
