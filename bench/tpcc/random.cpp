#include "bench/tpcc/random.h"

namespace atolldb::tpcc {

NurandConstants NurandConstants::for_load(uint64_t seed) {
  Random random(seed ^ 0x6c6f6164ull);
  return {random.uniform(0, 255), random.uniform(0, 1023), random.uniform(0, 8191)};
}

NurandConstants NurandConstants::for_run(uint64_t load_seed, uint64_t run_seed) {
  const NurandConstants load = for_load(load_seed);
  Random random(run_seed ^ 0x72756eull);
  NurandConstants run{0, random.uniform(0, 1023), random.uniform(0, 8191)};
  do {
    run.last_name = random.uniform(0, 255);
  } while (!is_valid_last_name_delta(load.last_name, run.last_name));
  return run;
}

}  // namespace atolldb::tpcc
