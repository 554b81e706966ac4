#include "bench/tpcc_driver/options.h"

#include <fmt/format.h>

#include "bench/tpcc/terminals.h"
#include "shared/base/try.h"

namespace atolldb::tpcc {

Result<std::array<uint32_t, kTransactionTypes>> parse_mix(std::string_view text) {
  constexpr const char* kHint =
      "give the percentages of new-order, payment, order-status, delivery and stock-level, for "
      "example 45/43/4/4/4";
  std::array<uint32_t, kTransactionTypes> mix{};
  ATOLL_TRY(bench::parse_mix(kCommand, text, '/', kHint, mix));
  return mix;
}

std::string format_mix(const std::array<uint32_t, kTransactionTypes>& mix) {
  return bench::format_mix(mix, '/');
}

Result<void> check_options(const Options& options) {
  const bench::Range ranges[] = {
      {"--warehouses", options.warehouses, 0, kMaxWarehouses},
      {"--remote-percent", options.remote_percent, 0, 100},
      {"--remote-payment-percent", options.remote_payment_percent, 0, 100},
      {"--loaded-lines", options.scale.max_lines, kMaxLines, kMaxLoadedLines},
  };
  ATOLL_TRY(bench::check_common_options(kCommand, options));
  ATOLL_TRY(bench::check_ranges(kCommand, ranges));
  // Also refuses NaN.
  if (!(options.think_scale >= 0 && options.think_scale <= kMaxThinkScale)) {
    return bench::usage_error(
        kCommand, "--think-time", fmt::format("{} is out of range", options.think_scale),
        fmt::format("use 0 (none) to {}; 1: the specification's times", kMaxThinkScale));
  }
  ATOLL_TRY(bench::check_clients(kCommand, options.clients));
  const bool reads_many_orders =
      options.mix[static_cast<size_t>(TransactionType::delivery)] != 0 ||
      options.mix[static_cast<size_t>(TransactionType::stock_level)] != 0;
  if (options.scale.max_lines > kMaxLines && reads_many_orders) {
    return bench::usage_error(
        kCommand, "--loaded-lines",
        fmt::format("deliveries and stock-levels take orders of {} lines at most", kMaxLines),
        "leave both out, for example with --mix 0/0/100/0/0");
  }
  return {};
}

Result<uint32_t> choose_warehouses(const Options& options, uint32_t nodes, uint32_t workers) {
  ATOLL_TRY(bench::check_client_count(kCommand, options.clients, nodes));
  const uint32_t warehouses = options.warehouses != 0 ? options.warehouses : workers;
  if (warehouses < nodes) {
    return bench::usage_error(
        kCommand, "--warehouses",
        fmt::format("{} warehouses for {} nodes leave a node without one", warehouses, nodes),
        fmt::format("use at least {}", nodes));
  }
  return warehouses;
}

JobInput job_input(const Options& options, uint32_t warehouses) {
  JobInput input;
  input.warehouses = warehouses;
  input.load_seed = options.load_seed.value_or(options.seed);
  input.scale = options.scale;
  input.seed = options.seed;
  input.remote_line_percent = options.remote_percent;
  input.remote_payment_percent = options.remote_payment_percent;
  input.mix = options.mix;
  input.think_scale = options.think_scale;
  return input;
}

}  // namespace atolldb::tpcc
