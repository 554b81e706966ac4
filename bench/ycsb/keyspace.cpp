#include "bench/ycsb/keyspace.h"

#include <numeric>

#include "shared/base/check.h"

namespace atolldb::ycsb {

Scatter::Scatter(uint64_t count) : count_(count) {
  CHECK(count >= 1 && count < uint64_t{1} << 32);
  // With a factor near the golden section of the range, neighbouring ranks are mapped far apart.
  constexpr double kGolden = 0.6180339887498949;
  factor_ = static_cast<uint64_t>(static_cast<double>(count) * kGolden);
  while (std::gcd(factor_, count) != 1) ++factor_;
}

}  // namespace atolldb::ycsb
