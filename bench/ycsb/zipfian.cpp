#include "bench/ycsb/zipfian.h"

#include <algorithm>
#include <cmath>

namespace atolldb::ycsb {

double zeta(uint64_t count, double theta) {
  constexpr uint64_t kOneByOne = 1'000;
  double sum = 0;
  const uint64_t first = std::min(count, kOneByOne);
  for (uint64_t i = 1; i <= first; ++i) sum += std::pow(static_cast<double>(i), -theta);
  if (count == first) return sum;
  // Sum of f over the integers of (a, b] by Euler-Maclaurin: the integral, half of f(b) - f(a), and
  // the term of the first derivative.
  const auto a = static_cast<double>(first);
  const auto b = static_cast<double>(count);
  const auto f = [&](double x) { return std::pow(x, -theta); };
  const auto slope = [&](double x) { return -theta * std::pow(x, -theta - 1); };
  const double integral = (std::pow(b, 1 - theta) - std::pow(a, 1 - theta)) / (1 - theta);
  return sum + integral + (f(b) - f(a)) / 2 + (slope(b) - slope(a)) / 12;
}

Zipfian::Zipfian(uint64_t count, double theta)
    : count_(count),
      alpha_(1 / (1 - theta)),
      zeta_(zeta(count, theta)),
      eta_((1 - std::pow(2 / static_cast<double>(count), 1 - theta)) /
           (1 - zeta(2, theta) / zeta_)),
      second_(1 + std::pow(0.5, theta)) {}

uint64_t Zipfian::next(bench::Random& random) const {
  const double u = random.unit();
  const double weight = u * zeta_;
  if (weight < 1 || count_ == 1) return 0;
  if (weight < second_ || count_ == 2) return 1;
  const double rank = static_cast<double>(count_) * std::pow(eta_ * u - eta_ + 1, alpha_);
  return std::min(static_cast<uint64_t>(rank), count_ - 1);
}

}  // namespace atolldb::ycsb
