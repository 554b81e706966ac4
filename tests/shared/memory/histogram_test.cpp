// Histograms in shared memory: bucket bounds, quantiles and concurrent readers.
#include "shared/memory/histogram.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb {
namespace {

using Buckets = HistogramBuckets;

TEST(HistogramTest, EveryValueIsBetweenTheEndsOfItsBucketAndBucketsAreNarrow) {
  for (uint32_t bucket = 0; bucket < Buckets::kCount; ++bucket) {
    const uint64_t lower = Buckets::lower(bucket);
    const uint64_t upper = Buckets::lower(bucket + 1);
    ASSERT_LT(lower, upper);
    ASSERT_EQ(Buckets::of(lower), bucket);
    ASSERT_EQ(Buckets::of(upper - 1), bucket);
    ASSERT_LE((upper - lower) * Buckets::kSub, std::max<uint64_t>(lower, Buckets::kSub));
  }
  EXPECT_EQ(Buckets::of(~uint64_t{0}), Buckets::kCount - 1);
}

TEST(HistogramTest, QuantilesAreWithinTwoPercentOfTheSortedValues) {
  std::mt19937_64 random(test::seed());
  const auto histogram = std::make_unique<Histogram>();
  std::vector<uint64_t> values;
  uint64_t sum = 0;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t value = random() >> (28 + random() % 30);
    values.push_back(value);
    sum += value;
    histogram->add(value);
  }
  std::sort(values.begin(), values.end());
  EXPECT_EQ(histogram->count(), values.size());
  EXPECT_EQ(histogram->sum_ns(), sum);
  EXPECT_EQ(histogram->max_ns(), values.back());
  for (const double quantile : {0.0, 0.01, 0.5, 0.95, 0.99, 0.999, 1.0}) {
    const auto exact = static_cast<double>(
        values[static_cast<size_t>(quantile * static_cast<double>(values.size() - 1))]);
    EXPECT_NEAR(static_cast<double>(histogram->quantile_ns(quantile)), exact, exact * 0.02 + 1)
        << quantile;
    EXPECT_LE(histogram->quantile_ns(quantile), histogram->max_ns());
  }
}

TEST(HistogramTest, AnEmptyOneHasNoLatency) {
  const auto empty = std::make_unique<Histogram>();
  EXPECT_EQ(empty->count(), 0u);
  EXPECT_EQ(empty->quantile_ns(0.5), 0u);
  EXPECT_EQ(empty->count_below(~uint64_t{0}), 0u);
  EXPECT_TRUE(empty->sparse().empty());
}

TEST(HistogramTest, LatenciesBeyondTheLastBucketKeepTheirMaximum) {
  const auto histogram = std::make_unique<Histogram>();
  const uint64_t hour = uint64_t{3600} * 1'000'000'000;
  histogram->add(hour);
  EXPECT_EQ(histogram->count(), 1u);
  EXPECT_EQ(histogram->max_ns(), hour);
  EXPECT_EQ(histogram->quantile_ns(1.0), hour);
}

TEST(HistogramTest, CountsBelowALimitGrowWithItAndAreExactAtTheEndsOfBuckets) {
  const auto histogram = std::make_unique<Histogram>();
  for (uint64_t value = 0; value < 4096; ++value) histogram->add(value);
  for (const uint64_t limit : {0u, 1u, 31u, 32u, 64u, 1024u, 2048u, 4096u}) {
    EXPECT_EQ(histogram->count_below(limit), limit);
  }
  uint64_t last = 0;
  for (uint64_t limit = 0; limit < 5000; ++limit) {
    const uint64_t below = histogram->count_below(limit);
    ASSERT_GE(below, last);
    ASSERT_LE(below, limit);
    last = below;
  }
}

TEST(HistogramTest, MergingAddsCountsAndSumsAndKeepsTheLargerMaximum) {
  const auto first = std::make_unique<Histogram>();
  const auto second = std::make_unique<Histogram>();
  for (uint64_t i = 0; i < 1'000; ++i) (i % 3 == 0 ? *first : *second).add(i * 37);
  const auto merged = std::make_unique<Histogram>(*first);
  merged->merge(*second);
  EXPECT_EQ(merged->count(), 1'000u);
  EXPECT_EQ(merged->sum_ns(), 999u * 1'000 / 2 * 37);
  EXPECT_EQ(merged->max_ns(), 999u * 37);
  EXPECT_NEAR(static_cast<double>(merged->quantile_ns(0.5)), 500 * 37, 500 * 37 * 0.03);
}

TEST(HistogramTest, ACopyAndARestoredOneHaveTheSameBucketsAndMaximum) {
  const auto histogram = std::make_unique<Histogram>();
  for (uint64_t i = 0; i < 1'000; ++i) histogram->add(i * 37);
  const auto assigned = std::make_unique<Histogram>();
  assigned->add(7);
  *assigned = *histogram;
  EXPECT_EQ(assigned->sparse(), histogram->sparse());
  EXPECT_EQ(assigned->sum_ns(), histogram->sum_ns());
  EXPECT_EQ(assigned->max_ns(), histogram->max_ns());
  const auto restored = std::make_unique<Histogram>();
  restored->restore(histogram->sparse(), histogram->max_ns());
  EXPECT_EQ(restored->sparse(), histogram->sparse());
  EXPECT_EQ(restored->max_ns(), histogram->max_ns());
  restored->restore({{HistogramBuckets::kCount, 1}}, 0);
  EXPECT_EQ(restored->count(), 1'000u) << "there is no such bucket";
}

TEST(HistogramTest, AnotherProcessReadsWhatItsWriterAdded) {
  void* memory =
      mmap(nullptr, sizeof(Histogram), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto* histogram = static_cast<Histogram*>(memory);  // zeroed memory is an empty histogram
  const pid_t child = fork();
  if (child == 0) {
    for (uint64_t i = 1; i <= 1'000; ++i) histogram->add(i);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(histogram->count(), 1'000u);
  EXPECT_EQ(histogram->sum_ns(), 500'500u);
  munmap(memory, sizeof(Histogram));
}

TEST(HistogramTest, AReaderBesideTheWriterNeverSeesCountsShrink) {
  const auto histogram = std::make_unique<Histogram>();
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (uint64_t i = 0; i < 200'000; ++i) histogram->add(i % 5'000);
    done.store(true, std::memory_order_relaxed);  // relaxed: the join orders the rest
  });
  uint64_t last = 0;
  while (!done.load(std::memory_order_relaxed)) {
    const uint64_t count = histogram->count();
    EXPECT_GE(count, last);
    last = count;
  }
  writer.join();
  EXPECT_EQ(histogram->count(), 200'000u);
}

}  // namespace
}  // namespace atolldb
