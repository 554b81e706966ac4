// Options of `atoll bench tpcc`, and their checks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/driver/client_options.h"
#include "bench/driver/options.h"
#include "bench/tpcc/inputs.h"
#include "bench/tpcc/job_input.h"
#include "bench/tpcc/scale.h"
#include "shared/base/error.h"

namespace atolldb::tpcc {

struct Options : bench::CommonOptions {
  uint32_t warehouses = 0;  // 0: one per worker
  uint32_t remote_percent = 1;
  uint32_t remote_payment_percent = 15;
  std::array<uint32_t, kTransactionTypes> mix = {45, 43, 4, 4, 4};
  // Restarts the cluster after the load, so that all data are in a snapshot when the runs begin.
  bool cold = false;
  double think_scale = 0;  // factor of the specification's keying and think times; 0: none
  bench::ClientOptions clients;
  std::optional<uint64_t> load_seed;  // of a database that was loaded before; nothing: `seed`
  Scale scale;                        // only tests change it, except max_lines and hash_orders
};

inline constexpr const char* kCommand = "bench tpcc";

/// Parses percentages of new-order, payment, order-status, delivery and stock-level, for example
/// "45/43/4/4/4". Their sum must be 100.
Result<std::array<uint32_t, kTransactionTypes>> parse_mix(std::string_view text);
std::string format_mix(const std::array<uint32_t, kTransactionTypes>& mix);

/// Checks the options that do not depend on the cluster. Returns usage errors.
Result<void> check_options(const Options& options);

/// Returns the number of warehouses, checked against the cluster that will serve them.
Result<uint32_t> choose_warehouses(const Options& options, uint32_t nodes, uint32_t workers);

/// Returns the input of all jobs; the times of a run are added later.
JobInput job_input(const Options& options, uint32_t warehouses);

}  // namespace atolldb::tpcc
