// Ranks with a Zipf distribution: rank r (from 0) has a probability proportional to 1 / (r +
// 1)^theta.
#pragma once

#include <cstdint>

#include "bench/common/random.h"

namespace atolldb::ycsb {

/// Returns the sum of 1 / i^theta for i = 1..count, exact to about 12 digits for every count. Adds
/// the first terms one by one, and the others by the Euler-Maclaurin formula.
double zeta(uint64_t count, double theta);

/// The generator of [GRAY94] (Gray et al., Quickly generating billion-record synthetic databases,
/// SIGMOD 1994), which YCSB also uses. Ranks 0 and 1 have their exact probabilities. The others
/// come from the inverse of a continuous distribution and deviate by some percent.
class Zipfian {
 public:
  /// REQUIRES: count >= 1, 0 < theta < 1.
  Zipfian(uint64_t count, double theta);

  /// Returns a rank of [0, count).
  uint64_t next(bench::Random& random) const;

 private:
  uint64_t count_;
  double alpha_;
  double zeta_;
  double eta_;
  double second_;  // if u * zeta is below this value, the rank is at most 1
};

}  // namespace atolldb::ycsb
