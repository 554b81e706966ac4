// Random values of clauses 2.1.6 and 4.3.2 of the TPC-C specification. Thread: one per object.
#pragma once

#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

#include "bench/common/random.h"

namespace atolldb::tpcc {

/// Distributions of the specification, on top of the generator that all benchmarks share.
class Random : public bench::Random {
 public:
  using bench::Random::Random;

  /// Clause 2.1.6: returns NURand(A, x, y) with C = `c`, the constant for that A.
  uint32_t nurand(uint32_t a, uint32_t c, uint32_t x, uint32_t y) {
    return (((uniform(0, a) | uniform(x, y)) + c) % (y - x + 1)) + x;
  }

  template <typename T>
  void shuffle(std::span<T> values) {
    for (uint32_t i = static_cast<uint32_t>(values.size()); i > 1; --i) {
      std::swap(values[i - 1], values[uniform(0, i - 1)]);
    }
  }
};

/// The constants C of NURand. The constants of load and run for last names differ by 65..119, but
/// not by 96 or 112 (clause 2.1.6.1).
struct NurandConstants {
  uint32_t last_name = 0;    // A = 255
  uint32_t customer_id = 0;  // A = 1023
  uint32_t item_id = 0;      // A = 8191

  static NurandConstants for_load(uint64_t seed);
  /// Returns constants that are valid for a run after for_load(load_seed).
  static NurandConstants for_run(uint64_t load_seed, uint64_t run_seed);
};

/// Clause 2.1.6.1: returns whether a run may use `run` for last names after a load with `load`.
constexpr bool is_valid_last_name_delta(uint32_t load, uint32_t run) {
  const uint32_t delta = load > run ? load - run : run - load;
  return delta >= 65 && delta <= 119 && delta != 96 && delta != 112;
}

/// Selects exactly `wanted` of `total` rows, each subset with equal probability (Knuth, algorithm
/// S). Call it once per row.
class Selection {
 public:
  Selection(uint32_t wanted, uint32_t total) : wanted_(wanted), left_(total) {}
  bool next(Random& random) {
    const bool picked = random.uniform(1, left_) <= wanted_;
    --left_;
    if (picked) --wanted_;
    return picked;
  }

 private:
  uint32_t wanted_;
  uint32_t left_;
};

}  // namespace atolldb::tpcc
