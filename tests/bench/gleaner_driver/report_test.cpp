// Figures of `atoll bench gleaner`, computed from runs with given times.
#include "bench/gleaner_driver/report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace atolldb::gleaner_bench {
namespace {

Gleaned run_of(uint64_t seconds) {
  constexpr uint64_t kSecond = 1'000'000'000;
  Gleaned run;
  run.records_read = 6'000'000;
  run.records_received = 3'000'000;
  run.records_composed = 1'500'000;
  run.map = {2 * seconds * kSecond, seconds * kSecond};
  run.collect = {2 * seconds * kSecond, seconds * kSecond / 2};
  run.compose = {seconds * kSecond, seconds * kSecond};
  run.finish = {seconds * kSecond, seconds * kSecond / 10, seconds * kSecond / 20};
  run.wall_ns = 4 * seconds * kSecond;
  return run;
}

Report report_of(std::vector<Gleaned> runs) {
  Report report;
  report.source = "a test";
  report.scenarios.push_back({"whole_log", "a start", 8192, 600'000'000, std::move(runs)});
  return report;
}

TEST(GleanerBenchReport, RatesArePerPartAndOfTheMedianRun) {
  const auto json = report_of({run_of(1), run_of(9), run_of(3)}).json()["scenarios"][0];
  EXPECT_DOUBLE_EQ(json["mapper"]["records_per_cpu_second"], 2e6);
  EXPECT_DOUBLE_EQ(json["mapper"]["records_per_second"], 1e6);
  EXPECT_DOUBLE_EQ(json["reducer"]["records_per_cpu_second"], 2e6);
  EXPECT_DOUBLE_EQ(json["composer"]["records_per_second"], 0.5e6);
  EXPECT_DOUBLE_EQ(json["seconds"], 12);
  EXPECT_DOUBLE_EQ(json["log_bytes_per_second"], 50e6);
  EXPECT_DOUBLE_EQ(json["log_bytes_per_core_second"], 600e6 / 7.8);
  EXPECT_DOUBLE_EQ(json["cpu_ns_per_log_record"], 1300);
  EXPECT_DOUBLE_EQ(json["system_ns_per_log_record"], 25);
  EXPECT_DOUBLE_EQ(json["mapper"]["cpu_ns_per_log_record"], 500);
  EXPECT_DOUBLE_EQ(json["reducer"]["cpu_ns_per_log_record"], 250);
  EXPECT_EQ(json["base_bytes"], 8192);
}

TEST(GleanerBenchReport, SaysTheSameInText) {
  const std::string text = report_of({run_of(3)}).text();
  for (const char* part :
       {"a start\n", "6,000,000 records", "older snapshot: 8 KiB", "12.00 s: 50 MB/s of log",
        "77 MB/s per core", "1300.0 ns per log record, of which the kernel 25.0 ns"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
  }
}

TEST(GleanerBenchReport, APartWithoutTimeHasNoRate) {
  const auto json = report_of({Gleaned{}}).json()["scenarios"][0];
  EXPECT_EQ(json["mapper"]["records_per_cpu_second"], 0.0);
  EXPECT_EQ(json["log_bytes_per_second"], 0.0);
  EXPECT_EQ(json["cpu_ns_per_log_record"], 0.0);
}

}  // namespace
}  // namespace atolldb::gleaner_bench
