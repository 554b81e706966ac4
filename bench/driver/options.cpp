#include "bench/driver/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "shared/base/try.h"

namespace atolldb::bench {

std::unexpected<Error> usage_error(std::string_view command, std::string_view flag,
                                   std::string_view why, std::string_view what_to_do) {
  return make_error(ExitCode::usage, fmt::format("{}: {}: {}: {}", command, flag, why, what_to_do));
}

Result<void> check_ranges(std::string_view command, std::span<const Range> ranges) {
  for (const auto& [flag, value, low, high] : ranges) {
    if (value >= low && value <= high) continue;
    return usage_error(command, flag, fmt::format("{} is out of range", value),
                       fmt::format("use {} to {}", low, high));
  }
  return {};
}

Result<void> check_common_options(std::string_view command, const CommonOptions& options) {
  const Range ranges[] = {
      // 0 means that the config decides.
      {"--nodes", options.nodes, 0, 255},
      {"--workers-per-node", options.workers_per_node, 0, 250},
      {"--seconds", options.seconds, 1, CommonOptions::kMaxSeconds},
      {"--warmup", options.warmup_seconds, 0, CommonOptions::kMaxSeconds},
      {"--repeat", options.repeat, 1, CommonOptions::kMaxRepeat},
  };
  ATOLL_TRY(check_ranges(command, ranges));
  constexpr std::string_view kModes[] = {"", "off", "durable", "measure"};
  if (std::ranges::find(kModes, options.durability) == std::end(kModes)) {
    return usage_error(command, "--durability",
                       fmt::format("'{}' is not a mode", options.durability),
                       "use durable, off, or measure, which discards the log");
  }
  return {};
}

Result<void> parse_mix(std::string_view command, std::string_view text, char separator,
                       std::string_view hint, std::span<uint32_t> mix) {
  static constexpr const char* kNumbers[] = {"no", "one", "two", "three", "four", "five"};
  const char* const count = kNumbers[mix.size()];
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t i = 0; i < mix.size(); ++i) {
    if (i != 0 && (at == end || *at++ != separator)) {
      return usage_error(
          command, "--mix",
          fmt::format("'{}' is not {} numbers separated by '{}'", text, count, separator), hint);
    }
    const auto [rest, error] = std::from_chars(at, end, mix[i]);
    if (error != std::errc{} || mix[i] > 100) {
      return usage_error(command, "--mix",
                         fmt::format("'{}' is not {} numbers from 0 to 100", text, count), hint);
    }
    at = rest;
  }
  if (at != end) {
    return usage_error(command, "--mix", fmt::format("'{}' has more than {} numbers", text, count),
                       hint);
  }
  const uint32_t sum = std::accumulate(mix.begin(), mix.end(), 0u);
  if (sum != 100) {
    return usage_error(command, "--mix", fmt::format("the sum of '{}' is {}, not 100", text, sum),
                       hint);
  }
  return {};
}

std::string format_mix(std::span<const uint32_t> mix, char separator) {
  return fmt::format("{}", fmt::join(mix, std::string_view(&separator, 1)));
}

}  // namespace atolldb::bench
