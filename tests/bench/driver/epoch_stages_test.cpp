// Stages of the epochs of a run: the difference of two answers of a cluster.
#include "bench/driver/epoch_stages.h"

#include <gtest/gtest.h>

namespace atolldb::bench {
namespace {

nlohmann::json answer(const LatencyHistogram& times, nlohmann::json slowest) {
  const nlohmann::json stage = {{"stage", "sync"}, {"buckets", times.sparse()}};
  return {{"stages", nlohmann::json::array({stage})}, {"slowest_epoch", std::move(slowest)}};
}

TEST(EpochStagesTest, OnlyValuesOfTheRunCount) {
  LatencyHistogram times;
  for (int i = 0; i < 5; ++i) times.add(900'000'000);
  times.add(10);
  const auto before = answer(times, nullptr);
  for (int i = 0; i < 3; ++i) times.add(10);
  times.add(20);
  const EpochStages stages = epoch_stages_between(before, answer(times, {{"epoch", 7}}));
  ASSERT_EQ(stages.stages.size(), 1u);
  EXPECT_EQ(stages.stages[0].name, "sync");
  EXPECT_EQ(stages.stages[0].times.count(), 4u);
  EXPECT_EQ(stages.stages[0].times.quantile_ns(0.5), 10u);
  EXPECT_EQ(stages.stages[0].times.max_ns(), 20u);
  EXPECT_EQ(stages.slowest_epoch.at("epoch"), 7);
}

TEST(EpochStagesTest, AClusterWithoutALogHasNone) {
  EXPECT_TRUE(epoch_stages_between(nullptr, nullptr).stages.empty());
  LatencyHistogram times;
  times.add(10);
  EXPECT_TRUE(epoch_stages_between(nullptr, answer(times, nullptr)).stages.empty());
  auto damaged = answer(times, nullptr);
  damaged["stages"][0]["buckets"] = {{HistogramBuckets::kCount, 1}};
  EXPECT_TRUE(epoch_stages_between(answer(LatencyHistogram(), nullptr), damaged).stages.empty());
}

TEST(EpochStagesTest, TheSlowestEpochIsOneLine) {
  const nlohmann::json stage = {{"stage", "sync"}, {"us", 1'234.0}};
  const nlohmann::json epoch = {{"epoch", 812},
                                {"total_us", 170'240.0},
                                {"stages", nlohmann::json::array({stage})},
                                {"last_logger", "node1/0"}};
  EXPECT_EQ(slowest_epoch_text(epoch),
            "slowest epoch 812: 170.24 ms: sync 1.23, last logger node1/0");
}

}  // namespace
}  // namespace atolldb::bench
