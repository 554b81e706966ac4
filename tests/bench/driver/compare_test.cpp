// Comparisons of reports, and latencies as buckets.
#include "bench/driver/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/common/random.h"
#include "bench/driver/histogram_file.h"
#include "tests/support/seed.h"

namespace atolldb::bench {
namespace {

using Json = nlohmann::json;

/// Returns `count` samples around `mean`, each off by at most `spread` of it.
std::vector<double> noisy(size_t count, double mean, double spread, Random& random) {
  std::vector<double> samples(count);
  for (double& sample : samples) sample = mean * (1 + spread * (2 * random.unit() - 1));
  return samples;
}

Json report_with(const std::string& benchmark, const std::vector<double>& samples) {
  return {{"benchmark", benchmark},
          {"runs", Json::array({{{"per_second_tps", samples}}})},
          {"config", {{"workers", 2}}},
          {"latency_us", {{"read", {{"p50", 10.0}, {"p99", 20.0}, {"p99.9", 40.0}}}}}};
}

TEST(CompareTest, TheIntervalContainsTheTrueChangeAsOftenAsItSays) {
  Random random(test::seed());
  constexpr int kRounds = 40;
  int covered = 0;
  for (int round = 0; round < kRounds; ++round) {
    const Change change =
        change_of_means(noisy(40, 1'000, 0.2, random), noisy(40, 1'100, 0.2, random));
    EXPECT_LE(change.low, change.relative);
    EXPECT_GE(change.high, change.relative);
    if (change.low <= 0.1 && change.high >= 0.1) ++covered;
  }
  // 95 % are expected; fewer than 75 % of 40 have a probability below 1e-5, also with the small
  // bias of the method.
  EXPECT_GE(covered, kRounds * 3 / 4);
}

TEST(CompareTest, EqualSamplesHaveNoChangeAndConstantOnesAnExactOne) {
  const std::vector<double> same(10, 500.0);
  const Change none = change_of_means(same, same);
  EXPECT_DOUBLE_EQ(none.relative, 0);
  EXPECT_DOUBLE_EQ(none.low, 0);
  EXPECT_DOUBLE_EQ(none.high, 0);
  const Change twice = change_of_means(same, std::vector<double>(kMinSamples, 1'000.0));
  EXPECT_DOUBLE_EQ(twice.low, 1);
  EXPECT_DOUBLE_EQ(twice.high, 1);
}

TEST(CompareTest, TheTextSaysWhatIsComparedAndWithWhichLimits) {
  Random random(1);
  const Json before = report_with("ycsb", noisy(20, 1'000, 0.01, random));
  Json after = report_with("ycsb", noisy(20, 1'200, 0.01, random));
  after["config"]["workers"] = 4;
  after["latency_us"]["read"]["p99"] = 30.0;
  const auto text = compare_text(before, after, "old.json");
  ASSERT_TRUE(text) << text.error().message;
  for (const char* part :
       {"compared with old.json", "95 % interval", "moving-block bootstrap", "not between them",
        "p99 20.0 -> 30.0 us (+50.0 %)", "workers: 2 -> 4"}) {
    EXPECT_NE(text->find(part), std::string::npos) << part << " is missing in\n" << *text;
  }
  const auto unchanged = compare_text(before, before, "old.json");
  ASSERT_TRUE(unchanged);
  EXPECT_NE(unchanged->find("no change is shown"), std::string::npos) << *unchanged;
}

TEST(CompareTest, ReportsThatCannotBeComparedAreRefused) {
  const std::vector<double> enough(kMinSamples, 1.0);
  const std::vector<double> too_few(kMinSamples - 1, 1.0);
  const Json good = report_with("ycsb", enough);
  EXPECT_TRUE(compare_text(good, good, "x"));
  for (const auto& [before, after] : std::vector<std::pair<Json, Json>>{
           {report_with("tpcc", enough), good},
           {report_with("ycsb", too_few), good},
           {good, report_with("ycsb", too_few)},
           {report_with("ycsb", std::vector<double>(kMinSamples, 0.0)), good}}) {
    const auto text = compare_text(before, after, "x");
    ASSERT_FALSE(text);
    EXPECT_EQ(text.error().code, ExitCode::usage);
    EXPECT_TRUE(text.error().message.starts_with("--compare x: ")) << text.error().message;
  }
  EXPECT_FALSE(read_report("/no/such/file"));
}

TEST(HistogramFileTest, BucketsAreThoseOfTheHistogram) {
  constexpr const char* kNames[] = {"read", "idle"};
  RunSummary run(1, 2);
  run.latency[0].add(31);
  run.latency[0].add(1'000);
  run.latency[0].add(1'001);
  run.durable_latency[0].add(5'000'000);
  EXPECT_TRUE(histograms_text("x.csv", "ycsb", run, kNames)
                  .starts_with("type,stage,first_ns,last_ns,count\nread,commit,31,31,1\n"
                               "read,commit,992,1007,2\nread,durable,"));
  const Json json = Json::parse(histograms_text("x.json", "ycsb", run, kNames));
  ASSERT_EQ(json["histograms"].size(), 2u) << "types without values are left out";
  EXPECT_EQ(json["histograms"][0]["count"], 3);
  EXPECT_EQ(json["histograms"][0]["buckets"][1], Json::array({992, 1'007, 2}));
  EXPECT_EQ(json["histograms"][1]["stage"], "durable");
}

}  // namespace
}  // namespace atolldb::bench
