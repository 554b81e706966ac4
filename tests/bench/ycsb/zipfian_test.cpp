// Frequencies of the Zipf generator, compared with the Zipf law.
#include "bench/ycsb/zipfian.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::ycsb {
namespace {

TEST(Zeta, IsTheSumItStandsFor) {
  for (const double theta : {0.01, 0.5, 0.99, 0.999}) {
    for (const uint64_t count : {1ull, 2ull, 999ull, 1'000ull, 1'001ull, 300'000ull}) {
      double sum = 0;
      for (uint64_t i = count; i >= 1; --i) sum += std::pow(static_cast<double>(i), -theta);
      EXPECT_NEAR(zeta(count, theta) / sum, 1, 1e-11) << count << " " << theta;
    }
  }
}

/// Returns how often each rank occurs in `draws` draws.
std::vector<double> frequencies(uint64_t count, double theta, uint32_t draws) {
  bench::Random random(test::seed());
  const Zipfian zipfian(count, theta);
  std::vector<double> found(count);
  for (uint32_t i = 0; i < draws; ++i) found.at(zipfian.next(random)) += 1.0 / draws;
  return found;
}

TEST(ZipfianRanks, TheFirstTwoHaveExactlyTheirProbability) {
  constexpr uint32_t kSamples = 2'000'000;
  for (const double theta : {0.3, 0.8, 0.99}) {
    const std::vector<double> found = frequencies(10'000, theta, kSamples);
    for (uint32_t rank = 0; rank < 2; ++rank) {
      const double expected = std::pow(rank + 1, -theta) / zeta(10'000, theta);
      // Six standard deviations: fails by chance once in 500 million runs.
      EXPECT_NEAR(found[rank], expected, 6 * std::sqrt(expected / kSamples)) << theta;
    }
  }
}

TEST(ZipfianRanks, ShareOfTheMostPopularIsThatOfTheLaw) {
  constexpr uint64_t kCount = 100'000;
  for (const double theta : {0.5, 0.99}) {
    const std::vector<double> found = frequencies(kCount, theta, 2'000'000);
    double sum = 0;
    for (uint64_t rank = 0, next = 10; rank < kCount; ++rank) {
      sum += found[rank];
      if (rank + 1 != next) continue;
      // [GRAY94] approximates by a continuous distribution. It deviates slightly between the
      // smallest and the largest rank.
      EXPECT_NEAR(sum, zeta(next, theta) / zeta(kCount, theta), 0.02) << next << " " << theta;
      next *= 10;
    }
  }
}

TEST(ZipfianRanks, StayInRangeHoweverFewThereAre) {
  for (const uint64_t count : {1ull, 2ull, 3ull, 10ull}) {
    const std::vector<double> found = frequencies(count, 0.99, 20'000);
    for (const double frequency : found) EXPECT_GT(frequency, 0) << count;
  }
}

}  // namespace
}  // namespace atolldb::ycsb
