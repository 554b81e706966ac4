// Compares the report of a run with an earlier report.
//
// The change of the throughput has a confidence interval from a moving-block bootstrap over the
// samples of one second. It resamples blocks of neighbouring seconds of each report, with
// replacement, and takes the quantiles of the relative change of the means. Blocks keep the
// dependence of neighbouring seconds. Limits:
//   - The interval covers what varies within the runs. It does not cover what varies between them:
//     other load on the machine, its temperature, the placement of memory, another build.
//   - With few seconds the interval is too narrow. kMinSamples is the least number.
//   - Latencies have no interval, because reports have only their quantiles.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "shared/base/error.h"

namespace atolldb::bench {

inline constexpr size_t kMinSamples = 5;
inline constexpr uint32_t kResamples = 10'000;
inline constexpr double kConfidence = 0.95;

struct Change {
  double relative = 0;  // of the means: 0.05 is 5 % more
  double low = 0;       // limits of the confidence interval
  double high = 0;
};

/// Returns the change from `before` to `after`. Equal samples give equal results. REQUIRES: both
/// have at least kMinSamples, and the mean of `before` is more than 0.
Change change_of_means(std::span<const double> before, std::span<const double> after);

/// Returns the comparison as text, whole lines. `path`: of the old report, for the text. Returns an
/// error of code usage if the old report is of another benchmark, or has too few samples.
Result<std::string> compare_text(const nlohmann::json& before, const nlohmann::json& after,
                                 const std::string& path);
/// Reads a report. Returns an error of code usage if the file cannot be read.
Result<nlohmann::json> read_report(const std::string& path);

}  // namespace atolldb::bench
