// Options that all benchmarks share, and their checks.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"

namespace atolldb::bench {

struct CommonOptions {
  uint32_t nodes = 0;             // 0: as the config says
  uint32_t workers_per_node = 0;  // 0: as the config says
  uint32_t seconds = 10;
  uint32_t warmup_seconds = 2;
  uint32_t repeat = 1;
  uint64_t seed = 1;
  std::string durability;  // off, durable or measure; empty: the config decides
  bool verify = true;
  std::string json_file;       // empty: none, as for the next two
  std::string histogram_file;  // latencies by bucket: CSV if it ends in .csv, else JSON
  std::string compare_file;    // report of an earlier run
  /// Connection strings of all nodes of a running cluster. Empty: a cluster of this machine is
  /// found or started.
  std::vector<std::string> connect;

  static constexpr uint32_t kMaxSeconds = 86'400;
  static constexpr uint32_t kMaxRepeat = 1'000;
};

/// `command`: prefix of the error, for example "bench tpcc".
std::unexpected<Error> usage_error(std::string_view command, std::string_view flag,
                                   std::string_view why, std::string_view what_to_do);

struct Range {
  const char* flag;
  uint64_t value;
  uint64_t low;
  uint64_t high;
};
/// Returns an error for the first value out of range, with flag, value and limits.
Result<void> check_ranges(std::string_view command, std::span<const Range> ranges);

/// Checks the options that do not depend on the cluster. Returns usage errors.
Result<void> check_common_options(std::string_view command, const CommonOptions& options);

/// Parses `mix.size()` percentages, separated by `separator`. Their sum must be 100. `hint`: end of
/// the error text.
Result<void> parse_mix(std::string_view command, std::string_view text, char separator,
                       std::string_view hint, std::span<uint32_t> mix);
std::string format_mix(std::span<const uint32_t> mix, char separator);

}  // namespace atolldb::bench
