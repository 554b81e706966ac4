// Families of a scrape: names, kinds and samples are checked.
#include "shared/metrics/metric_families.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace atolldb {
namespace {

struct Machine {
  Counter turns;
  std::atomic<uint64_t> pages{0};
  std::atomic<bool> is_hot{false};
  uint32_t wheels = 4;
};

constexpr Metric<Machine> kMachineMetrics[] = {
    {"atoll_turns_total", "Turns.", field<&Machine::turns>},
    {"atoll_memory_bytes", "Size of the pages.", field<&Machine::pages>, 4096},
    {"atoll_hot", "1 while the machine is hot.", field<&Machine::is_hot>},
    {"atoll_wheels", "Wheels.", field<&Machine::wheels>},
};

TEST(MetricFamiliesTest, ATableGivesAFamilyPerRowAndASamplePerSource) {
  std::array<Machine, 2> machines;
  machines[0].turns.add(3);
  machines[1].pages.store(2, std::memory_order_relaxed);
  machines[1].is_hot.store(true, std::memory_order_relaxed);
  MetricFamilies families(MetricFamilies::Labels{{"node", "7"}});
  families.add(kMachineMetrics, std::span<const Machine>(machines), "machine");
  const std::vector<prometheus::MetricFamily> made = families.take();
  ASSERT_EQ(made.size(), std::size(kMachineMetrics));
  EXPECT_EQ(made[0].type, prometheus::MetricType::Counter);
  EXPECT_EQ(made[0].name, "atoll_turns_total");
  EXPECT_EQ(made[1].type, prometheus::MetricType::Gauge);
  ASSERT_EQ(made[0].metric.size(), 2u);
  EXPECT_EQ(made[0].metric[0].counter.value, 3);
  EXPECT_EQ(made[1].metric[1].gauge.value, 8192);
  EXPECT_EQ(made[2].metric[1].gauge.value, 1);
  EXPECT_EQ(made[3].metric[0].gauge.value, 4);
  ASSERT_EQ(made[1].metric[1].label.size(), 2u);
  EXPECT_EQ(made[1].metric[1].label[0].value, "7");
  EXPECT_EQ(made[1].metric[1].label[1].name, "machine");
  EXPECT_EQ(made[1].metric[1].label[1].value, "1");

  MetricFamilies one({});
  one.add(kMachineMetrics, machines[0]);
  EXPECT_EQ(one.take()[0].metric[0].counter.value, 3);
}

TEST(MetricFamiliesDeathTest, WrongFamiliesAreRefused) {
  const auto families = [] { return MetricFamilies({}); };
  EXPECT_DEATH(families().counter("atoll_turns", "Turns."), "is_counter_name");
  EXPECT_DEATH(families().gauge("atoll_turns_total", "Turns."), "is_counter_name");
  EXPECT_DEATH(families().gauge("atoll_Turns", "Turns."), "is_valid");
  EXPECT_DEATH(families().gauge("turns", "Turns."), "is_valid");
  EXPECT_DEATH(families().gauge("processes", "Processes."), "is_valid");
  EXPECT_DEATH(families().gauge("atoll_turns", "Turns"), "is_valid");
  EXPECT_DEATH(families().gauge("atoll_turns", "Turns.").sample(1.0).gauge("atoll_turns", "T."),
               "name");
  EXPECT_DEATH(families().gauge("atoll_turns", "Turns.").sample(-1.0), "value");
  EXPECT_DEATH(families().gauge("atoll_turns", "Turns.").take(), "empty");
  const auto latencies = std::make_unique<Histogram>();
  // The value 65 is not a limit of a bucket: it lies between two limits.
  EXPECT_DEATH(families().histogram("atoll_turn_seconds", "T.").sample(*latencies, {65}, {}),
               "HistogramBuckets");
  EXPECT_DEATH(families().histogram("atoll_turn_seconds", "T.").sample(*latencies, {64, 64}, {}),
               "is_sorted");
  const std::array<uint64_t, 2> counts = {1, 2};
  const std::array<uint64_t, 2> bounds = {10, 20};
  const auto histogram = [&] { return families().histogram("atoll_turn_seconds", "T."); };
  EXPECT_DEATH(histogram().sample(counts, bounds, 0, {}), "counts.size");
  EXPECT_DEATH(histogram().sample(counts, std::span(bounds).first(1), 0, {{"turn", ""}}), "value");
}

TEST(MetricFamiliesTest, CountedBucketsAddUpAndHaveRoundLimits) {
  MetricFamilies families(MetricFamilies::Labels{{"node", "7"}});
  const std::array<uint64_t, 3> counts = {1, 2, 4};
  const std::array<uint64_t, 2> bounds = {200'000, 5'000'000'000};
  families.histogram("atoll_turn_seconds", "Turns.")
      .sample(counts, bounds, 1'500'000'000, {{"turn", "left"}});
  const std::vector<prometheus::MetricFamily> made = families.take();
  const prometheus::ClientMetric& metric = made.at(0).metric.at(0);
  ASSERT_EQ(metric.label.size(), 2u);
  EXPECT_EQ(metric.label[1].value, "left");
  ASSERT_EQ(metric.histogram.bucket.size(), 3u);
  EXPECT_EQ(metric.histogram.bucket[0].cumulative_count, 1u);
  EXPECT_EQ(metric.histogram.bucket[0].upper_bound, 0.0002);
  EXPECT_EQ(metric.histogram.bucket[1].cumulative_count, 3u);
  EXPECT_EQ(metric.histogram.bucket[1].upper_bound, 5.0);
  EXPECT_EQ(metric.histogram.bucket[2].cumulative_count, 7u);
  EXPECT_EQ(metric.histogram.sample_count, 7u);
  EXPECT_EQ(metric.histogram.sample_sum, 1.5);
}

}  // namespace
}  // namespace atolldb
