#include "bench/common/latency_histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "bench/tpcc/random.h"
#include "tests/support/seed.h"

namespace atolldb::bench {
namespace {

TEST(LatencyHistogram, QuantilesAreWithinTwoPercentOfTheSortedValues) {
  tpcc::Random random(test::seed());
  LatencyHistogram histogram;
  std::vector<uint64_t> values;
  for (int i = 0; i < 100'000; ++i) {
    values.push_back(random.next() >> random.uniform(27, 60));
    histogram.add(values.back());
  }
  std::sort(values.begin(), values.end());
  for (const double quantile : {0.0, 0.5, 0.95, 0.99, 0.999}) {
    const auto exact = static_cast<double>(
        values[static_cast<size_t>(quantile * static_cast<double>(values.size() - 1))]);
    EXPECT_NEAR(static_cast<double>(histogram.quantile_ns(quantile)), exact, exact * 0.02 + 1);
  }
  EXPECT_EQ(histogram.max_ns(), values.back());
  EXPECT_LE(histogram.quantile_ns(1.0), histogram.max_ns());
}

TEST(LatencyHistogram, MergingAndRestoringKeepEverything) {
  LatencyHistogram first;
  LatencyHistogram second;
  for (uint64_t i = 0; i < 1'000; ++i) (i % 3 == 0 ? first : second).add(i * 37);
  LatencyHistogram merged;
  merged.merge(first);
  LatencyHistogram restored;
  restored.restore(second.sparse(), second.max_ns());
  merged.merge(restored);
  EXPECT_EQ(merged.count(), 1'000u);
  EXPECT_EQ(merged.max_ns(), 999u * 37);
  EXPECT_NEAR(static_cast<double>(merged.quantile_ns(0.5)), 500 * 37, 500 * 37 * 0.03);
}

TEST(LatencyHistogram, AnEmptyOneHasNoLatency) {
  EXPECT_EQ(LatencyHistogram().quantile_ns(0.5), 0u);
  EXPECT_EQ(LatencyHistogram().count(), 0u);
}

}  // namespace
}  // namespace atolldb::bench
