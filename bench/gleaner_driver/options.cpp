#include "bench/gleaner_driver/options.h"

#include "bench/driver/options.h"

namespace atolldb::gleaner_bench {

Result<void> check_options(const Options& options) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  const bench::Range ranges[] = {
      {"--record-seconds", options.record_seconds, 1, Options::kMaxSeconds},
      {"--warehouses", options.warehouses, 1, Options::kMaxWarehouses},
      {"--repeat", options.repeat, 1, Options::kMaxRepeat},
      {"--exchange-bytes", options.exchange_bytes, kMiB, uint64_t{1} << 32},
  };
  return bench::check_ranges(kCommand, ranges);
}

void make_smoke(Options& options) {
  options.record_seconds = options.warehouses = 1;
  options.repeat = 2;
  options.exchange_bytes = uint64_t{1} << 20;  // small, to force sorted runs
}

}  // namespace atolldb::gleaner_bench
