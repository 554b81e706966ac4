// The history of the status page: rates, the full ring, gaps and the part that a client lacks.
#include "coordinator/web/status_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kSecondNs = 1'000'000'000;

/// Returns counts at this second, with 100 commits and 10 aborts per second so far.
ClusterCounts counts_at(uint64_t second) {
  ClusterCounts counts;
  counts.time_ns = (second + 1) * kSecondNs;
  counts.unix_ms = static_cast<int64_t>(1'000 * second);
  counts.commits = 100 * second;
  counts.aborts = 10 * second;
  counts.log_bytes = 4'096 * second;
  counts.durability_lag_us = 12'340;
  counts.cache_bytes = 8'192;
  counts.pool_used_percent = {25, 50.26};
  return counts;
}

TEST(StatusHistoryTest, AnEmptyHistoryAndTheFirstCountsHaveNoSample) {
  StatusHistory history;
  EXPECT_EQ(history.json(0)["last"], 0);
  history.add(counts_at(0));
  const Json json = history.json(0);
  EXPECT_EQ(json["last"], 0);
  EXPECT_EQ(json["time_ms"], Json::array());
  EXPECT_EQ(json["capacity"], StatusHistory::kCapacity);
  EXPECT_EQ(json["pool_used_percent"], Json::array({Json::array(), Json::array()}));
}

TEST(StatusHistoryTest, ASampleHasTheRatesSinceTheOneBefore) {
  StatusHistory history;
  history.add(counts_at(0));
  history.add(counts_at(1));
  const Json json = history.json(0);
  EXPECT_EQ(json["last"], 1);
  EXPECT_EQ(json["time_ms"], Json::array({1'000}));
  EXPECT_EQ(json["seconds"], Json::array({1.0}));
  EXPECT_EQ(json["transactions_per_s"], Json::array({100.0}));
  EXPECT_EQ(json["aborts_per_s"], Json::array({10.0}));
  EXPECT_EQ(json["page_delays_per_s"], Json::array({0.0}));
  EXPECT_EQ(json["log_bytes_per_s"], Json::array({4'096.0}));
  EXPECT_EQ(json["durability_lag_ms"], Json::array({12.3}));
  EXPECT_EQ(json["snapshot_cache_bytes"], Json::array({8'192.0}));
  EXPECT_EQ(json["pool_used_percent"], Json::array({Json::array({25.0}), Json::array({50.3})}));
}

TEST(StatusHistoryTest, AFullRingKeepsTheNewestSamplesInTheirOrder) {
  StatusHistory history;
  for (const uint64_t samples : {StatusHistory::kCapacity - 1, StatusHistory::kCapacity,
                                 StatusHistory::kCapacity + 1, 2 * StatusHistory::kCapacity + 7}) {
    for (uint64_t second = history.json(0)["last"]; second <= samples; ++second) {
      history.add(counts_at(second));
    }
    const Json json = history.json(0);
    ASSERT_EQ(json["last"], samples);
    const auto times = json["time_ms"].get<std::vector<int64_t>>();
    ASSERT_EQ(times.size(), std::min(samples, StatusHistory::kCapacity));
    for (size_t i = 0; i < times.size(); ++i) {
      ASSERT_EQ(times[i], static_cast<int64_t>(1'000 * (samples - times.size() + 1 + i)));
    }
    EXPECT_EQ(json["pool_used_percent"][1].size(), times.size());
  }
}

TEST(StatusHistoryTest, AGapIsOneSampleWithItsLength) {
  StatusHistory history;
  history.add(counts_at(0));
  history.add(counts_at(1));
  history.add(counts_at(61));
  const Json json = history.json(0);
  EXPECT_EQ(json["time_ms"], Json::array({1'000, 61'000}));
  EXPECT_EQ(json["seconds"], Json::array({1.0, 60.0}));
  EXPECT_EQ(json["transactions_per_s"], Json::array({100.0, 100.0}));
}

TEST(StatusHistoryTest, CountsWithoutProgressOfTheClockAreIgnored) {
  StatusHistory history;
  history.add(counts_at(5));
  history.add(counts_at(5));
  history.add(counts_at(4));
  EXPECT_EQ(history.json(0)["last"], 0);
}

TEST(StatusHistoryTest, ACounterThatDecreasesGivesNoNegativeRate) {
  StatusHistory history;
  history.add(counts_at(1));
  ClusterCounts counts = counts_at(2);
  counts.commits = 50;
  history.add(counts);
  EXPECT_EQ(history.json(0)["transactions_per_s"], Json::array({0.0}));
}

TEST(StatusHistoryTest, AClientGetsTheSamplesThatItLacks) {
  StatusHistory history;
  for (uint64_t second = 0; second <= 10; ++second) history.add(counts_at(second));
  EXPECT_EQ(history.json(8)["time_ms"], Json::array({9'000, 10'000}));
  EXPECT_EQ(history.json(10)["time_ms"], Json::array());
  EXPECT_EQ(history.json(10)["last"], 10);
  EXPECT_EQ(history.json(11)["time_ms"].size(), 10u) << "the number is of an earlier history";
  EXPECT_EQ(history.json(UINT64_MAX)["time_ms"].size(), 10u);
}

}  // namespace
}  // namespace atolldb::test
