#include "bench/tpcc_driver/options.h"

#include <fmt/format.h>

#include <charconv>
#include <numeric>

namespace atolldb::tpcc {

namespace {

std::unexpected<Error> usage(const std::string& flag, const std::string& why,
                             const std::string& what_to_do) {
  return make_error(ExitCode::usage, fmt::format("bench tpcc: {}: {}: {}", flag, why, what_to_do));
}

Result<void> check_range(const std::string& flag, uint64_t value, uint64_t low, uint64_t high) {
  if (value >= low && value <= high) return {};
  return usage(flag, fmt::format("{} is out of range", value),
               fmt::format("use {} to {}", low, high));
}

}  // namespace

Result<std::array<uint32_t, kTransactionTypes>> parse_mix(std::string_view text) {
  constexpr const char* kHint =
      "give the percentages of new-order, payment, order-status, delivery and stock-level, for "
      "example 45/43/4/4/4";
  std::array<uint32_t, kTransactionTypes> mix{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (uint32_t i = 0; i < kTransactionTypes; ++i) {
    if (i != 0 && (at == end || *at++ != '/')) {
      return usage("--mix", fmt::format("'{}' is not five numbers with '/' between", text), kHint);
    }
    const auto [rest, error] = std::from_chars(at, end, mix[i]);
    if (error != std::errc{} || mix[i] > 100) {
      return usage("--mix", fmt::format("'{}' is not five numbers from 0 to 100", text), kHint);
    }
    at = rest;
  }
  if (at != end) {
    return usage("--mix", fmt::format("'{}' has more than five numbers", text), kHint);
  }
  const uint32_t sum = std::accumulate(mix.begin(), mix.end(), 0u);
  if (sum != 100) {
    return usage("--mix", fmt::format("'{}' sums up to {}, not to 100", text, sum), kHint);
  }
  return mix;
}

std::string format_mix(const std::array<uint32_t, kTransactionTypes>& mix) {
  return fmt::format("{}", fmt::join(mix, "/"));
}

Result<void> check_options(const Options& options) {
  const std::tuple<const char*, uint64_t, uint64_t, uint64_t> ranges[] = {
      // 0 stands for "as the config says"; the command line does not let a user write it.
      {"--nodes", options.nodes, 0, 255},
      {"--workers-per-node", options.workers_per_node, 0, 250},
      {"--warehouses", options.warehouses, 0, kMaxWarehouses},
      {"--seconds", options.seconds, 1, Options::kMaxSeconds},
      {"--warmup", options.warmup_seconds, 0, Options::kMaxSeconds},
      {"--repeat", options.repeat, 1, Options::kMaxRepeat},
      {"--remote-percent", options.remote_percent, 0, 100},
      {"--remote-payment-percent", options.remote_payment_percent, 0, 100},
  };
  for (const auto& [flag, value, low, high] : ranges) {
    const Result<void> checked = check_range(flag, value, low, high);
    if (!checked) return checked;
  }
  if (options.durability == "durable") {
    return usage("--durability", "'durable' needs a log, which this version does not write",
                 "use off");
  }
  if (options.durability != "off") {
    return usage("--durability", fmt::format("'{}' is not a mode", options.durability), "use off");
  }
  return {};
}

Result<uint32_t> choose_warehouses(const Options& options, uint32_t nodes, uint32_t workers) {
  const uint32_t warehouses = options.warehouses != 0 ? options.warehouses : workers;
  if (warehouses < nodes) {
    return usage(
        "--warehouses",
        fmt::format("{} warehouses for {} nodes leave a node without one", warehouses, nodes),
        fmt::format("use at least {}", nodes));
  }
  return warehouses;
}

JobInput job_input(const Options& options, uint32_t warehouses) {
  JobInput input;
  input.warehouses = warehouses;
  input.load_seed = options.seed;
  input.scale = options.scale;
  input.seed = options.seed;
  input.remote_line_percent = options.remote_percent;
  input.remote_payment_percent = options.remote_payment_percent;
  input.mix = options.mix;
  return input;
}

}  // namespace atolldb::tpcc
