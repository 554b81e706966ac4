// Ranks that follow Zipf's law: rank r (from 0) with a probability proportional to
// 1 / (r + 1)^theta.
#pragma once

#include <cstdint>

#include "bench/common/random.h"

namespace atolldb::ycsb {

/// Sum of 1 / i^theta for i = 1..count, exact to about 12 digits whatever the count: the first
/// terms one by one, the rest by the formula of Euler and Maclaurin.
double zeta(uint64_t count, double theta);

/// The generator of Gray et al. (SIGMOD 1994, "Quickly generating billion-record synthetic
/// databases"), which YCSB uses too: ranks 0 and 1 have exactly their probabilities, the others
/// come from the inverse of a continuous distribution and are off by some percent.
class Zipfian {
 public:
  /// REQUIRES: count >= 1, 0 < theta < 1.
  Zipfian(uint64_t count, double theta);

  /// Of [0, count).
  uint64_t next(bench::Random& random) const;

 private:
  uint64_t count_;
  double alpha_;
  double zeta_;
  double eta_;
  double second_;  // up to here, u * zeta is rank 1
};

}  // namespace atolldb::ycsb
