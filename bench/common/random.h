// The random number generator of all benchmarks. It is fast, and equal seeds give equal numbers on
// every machine. Thread: one per object.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace atolldb::bench {

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

  /// Returns a number of [low, high], with high - low < 2^32. The bias is below 2^-32.
  uint32_t uniform(uint32_t low, uint32_t high) {
    const uint64_t range = uint64_t{high} - low + 1;
    return low + static_cast<uint32_t>(((next() >> 32) * range) >> 32);
  }
  /// Returns true with a probability of `percent` / 100.
  bool percent(uint32_t percent) { return uniform(1, 100) <= percent; }
  /// Returns a number of [0, 1), in steps of 2^-53.
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  /// Think times are at most this many times their mean (clause 5.2.5.4 of TPC-C).
  static constexpr double kMaxThinkFactor = 10;
  /// Returns a random think time of this mean: exponentially distributed, and cut.
  double think_time(double mean) {
    // The argument of the logarithm is more than 0.
    return std::min(-std::log(1 - unit()), kMaxThinkFactor) * mean;
  }

 private:
  uint64_t state_[4];
};

}  // namespace atolldb::bench
