// Random values of clause 2.1.6 and 4.3.2 of the TPC-C specification. Not shared between threads.
#pragma once

#include <bit>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace atolldb::tpcc {

/// xoshiro256++ (Blackman, Vigna), seeded through splitmix64: equal seeds give equal sequences.
class Random {
 public:
  explicit Random(uint64_t seed) {
    for (uint64_t& word : state_) {
      seed += 0x9e3779b97f4a7c15ull;
      uint64_t mixed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9ull;
      mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebull;
      word = mixed ^ (mixed >> 31);
    }
  }

  uint64_t next() {
    const uint64_t result = std::rotl(state_[0] + state_[3], 23) + state_[0];
    const uint64_t shifted = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= shifted;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }

  /// random(low .. high), both inclusive, high - low < 2^32. The bias is below 2^-32.
  uint32_t uniform(uint32_t low, uint32_t high) {
    const uint64_t range = uint64_t{high} - low + 1;
    return low + static_cast<uint32_t>(((next() >> 32) * range) >> 32);
  }
  /// True in `percent` of 100 cases.
  bool percent(uint32_t percent) { return uniform(1, 100) <= percent; }

  /// Clause 2.1.6: NURand(A, x, y) with the run-time constant C of that A.
  uint32_t nurand(uint32_t a, uint32_t c, uint32_t x, uint32_t y) {
    return (((uniform(0, a) | uniform(x, y)) + c) % (y - x + 1)) + x;
  }

  template <typename T>
  void shuffle(std::span<T> values) {
    for (uint32_t i = static_cast<uint32_t>(values.size()); i > 1; --i) {
      std::swap(values[i - 1], values[uniform(0, i - 1)]);
    }
  }

 private:
  uint64_t state_[4];
};

/// The constants C of NURand. The one for last names differs between load and run by 65..119, but
/// neither 96 nor 112 (clause 2.1.6.1).
struct NurandConstants {
  uint32_t last_name = 0;    // A = 255
  uint32_t customer_id = 0;  // A = 1023
  uint32_t item_id = 0;      // A = 8191

  static NurandConstants for_load(uint64_t seed);
  /// Valid beside for_load(load_seed), whatever the seeds are.
  static NurandConstants for_run(uint64_t load_seed, uint64_t run_seed);
};

/// Clause 2.1.6.1: whether a run may use `run` for last names after a load with `load`.
constexpr bool is_valid_last_name_delta(uint32_t load, uint32_t run) {
  const uint32_t delta = load > run ? load - run : run - load;
  return delta >= 65 && delta <= 119 && delta != 96 && delta != 112;
}

/// Picks exactly `wanted` of `total` rows, every subset alike (Knuth, algorithm S): ask once a row.
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
