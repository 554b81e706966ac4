// What `atoll bench gleaner` can be told, and the checks of it.
#pragma once

#include <cstdint>

#include "shared/error.h"

namespace atolldb::gleaner_bench {

inline constexpr const char* kCommand = "bench gleaner";

struct Options {
  uint32_t record_seconds = 3;                   // of TPC-C, whose log is gleaned
  uint32_t warehouses = 2;                       // of it: how much its load logs
  uint32_t repeat = 3;                           // each run; the median counts
  uint64_t exchange_bytes = uint64_t{64} << 20;  // of the reducer's inbox

  static constexpr uint32_t kMaxSeconds = 86'400;
  static constexpr uint32_t kMaxWarehouses = 1'000;
  static constexpr uint32_t kMaxRepeat = 1'000;
};

/// usage errors.
Result<void> check_options(const Options& options);

/// So small that it only shows that everything works.
void make_smoke(Options& options);

}  // namespace atolldb::gleaner_bench
