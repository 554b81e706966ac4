// Options of `atoll bench gleaner`, and their checks.
#pragma once

#include <cstdint>

#include "shared/base/error.h"

namespace atolldb::gleaner_bench {

inline constexpr const char* kCommand = "bench gleaner";

struct Options {
  uint32_t record_seconds = 3;  // duration of the TPC-C run that makes the log
  uint32_t warehouses = 2;      // of the TPC-C run; determines the log volume of the load
  uint32_t repeat = 3;          // runs per log; the report has the median
  uint64_t exchange_bytes = uint64_t{64} << 20;  // size of the reducer's inbox

  static constexpr uint32_t kMaxSeconds = 86'400;
  static constexpr uint32_t kMaxWarehouses = 1'000;
  static constexpr uint32_t kMaxRepeat = 1'000;
};

/// Returns usage errors.
Result<void> check_options(const Options& options);

/// Makes the sizes so small that the run is only a functional check.
void make_smoke(Options& options);

}  // namespace atolldb::gleaner_bench
