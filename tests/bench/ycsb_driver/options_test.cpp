#include "bench/ycsb_driver/options.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "bench/ycsb_driver/estimate.h"

namespace atolldb::ycsb {
namespace {

TEST(Options, DefaultsAreTheDocumentedOnesAndValid) {
  const Options options;
  const Result<JobInput> input = job_input(options);
  ASSERT_TRUE(input.has_value()) << input.error().message;
  EXPECT_EQ(options.workload_name(), "A");
  EXPECT_EQ(input->mix, (Mix{50, 50, 0, 0, 0}));
  EXPECT_EQ(input->distribution, Distribution::zipfian);
  EXPECT_EQ(input->records, 1'000'000u);
  EXPECT_EQ(input->shape.record_bytes, 100u);
  EXPECT_EQ(input->shape.fields, 1u);
  EXPECT_EQ(input->theta, 0.99);
  EXPECT_EQ(input->remote_percent, kAllNodesAlike);
  EXPECT_EQ(input->operations, 1u);
  EXPECT_EQ(input->scan_length, 100u);
  EXPECT_FALSE(input->is_array);
  EXPECT_FALSE(input->is_ordered);
  EXPECT_TRUE(options.verify);
}

TEST(Options, EveryWorkloadSetsItsMixAndDistribution) {
  for (const auto& [name, mix, distribution] :
       {std::tuple{"A", Mix{50, 50, 0, 0, 0}, Distribution::zipfian},
        {"B", Mix{95, 5, 0, 0, 0}, Distribution::zipfian},
        {"C", Mix{100, 0, 0, 0, 0}, Distribution::zipfian},
        {"D", Mix{95, 0, 5, 0, 0}, Distribution::latest},
        {"E", Mix{0, 0, 5, 95, 0}, Distribution::zipfian},
        {"F", Mix{50, 0, 0, 0, 50}, Distribution::zipfian},
        {"silor", Mix{70, 30, 0, 0, 0}, Distribution::uniform}}) {
    Options options;
    options.workload = name;
    const Result<JobInput> input = job_input(options);
    ASSERT_TRUE(input.has_value()) << name;
    EXPECT_EQ(input->mix, mix) << name;
    EXPECT_EQ(input->distribution, distribution) << name;
    options.distribution = "uniform";
    EXPECT_EQ(job_input(options)->distribution, Distribution::uniform) << "it has the last word";
  }
}

/// For each invalid value, the error names the flag, the value, and what would be valid.
TEST(Options, EveryBadOneIsAUsageErrorThatNamesItAndTheWayOut) {
  struct Case {
    std::function<void(Options&)> set;
    const char* flag;
    const char* value;
    const char* way_out;
  };
  const Case cases[] = {
      {[](Options& o) { o.nodes = 256; }, "--nodes", "256", "use 0 to 255"},
      {[](Options& o) { o.workers_per_node = 251; }, "--workers-per-node", "251", "use 0 to 250"},
      {[](Options& o) { o.seconds = 0; }, "--seconds", "0", "use 1 to 86400"},
      {[](Options& o) { o.warmup_seconds = 86'401; }, "--warmup", "86401", "use 0 to 86400"},
      {[](Options& o) { o.repeat = 0; }, "--repeat", "0", "use 1 to 1000"},
      {[](Options& o) { o.durability = "x"; }, "--durability", "'x'", "use durable, off"},
      {[](Options& o) { o.records = 0; }, "--records", "0", "use 1 to 4000000000"},
      {[](Options& o) { o.records = 4'000'000'001; }, "--records", "4000000001", "use 1 to"},
      {[](Options& o) { o.record_bytes = 15; }, "--record-bytes", "15", "use 16 to 2000"},
      {[](Options& o) { o.record_bytes = 2'001; }, "--record-bytes", "2001", "use 16 to 2000"},
      {[](Options& o) { o.fields = 0; }, "--fields", "0", "use 1 to 100"},
      {[](Options& o) { o.fields = 101; }, "--fields", "101", "use 1 to 100"},
      {[](Options& o) { o.fields = 3; }, "--fields", "3 fields", "use a divisor"},
      {[](Options& o) { o.fields = 10; }, "--fields", "10 fields of 10 bytes", "use at most 6"},
      {[](Options& o) { o.remote_percent = 101; }, "--remote-percent", "101", "use 0 to 100"},
      {[](Options& o) { o.operations = 0; }, "--operations", "0", "use 1 to 1000"},
      {[](Options& o) { o.operations = 1'001; }, "--operations", "1001", "use 1 to 1000"},
      {[](Options& o) { o.scan_length = 0; }, "--scan-length", "0", "use 1 to 1000"},
      {[](Options& o) { o.scan_length = 1'001; }, "--scan-length", "1001", "use 1 to 1000"},
      {[](Options& o) { o.workload = "G"; }, "--workload", "'G'", "use A, B, C, D, E, F or silor"},
      {[](Options& o) { o.workload = "a"; }, "--workload", "'a'", "use A"},
      {[](Options& o) { o.workload = "A", o.mix = "100:0:0:0:0"; }, "--mix", "--workload A",
       "give only one of the two"},
      {[](Options& o) { o.mix = "50:50"; }, "--mix", "'50:50'", "80:20:0:0:0"},
      {[](Options& o) { o.mix = "50:50:0:0:1"; }, "--mix", "the sum of '50:50:0:0:1' is 101",
       "80:20:0:0:0"},
      {[](Options& o) { o.mix = "50/50/0/0/0"; }, "--mix", "'50/50/0/0/0'", "80:20:0:0:0"},
      {[](Options& o) { o.mix = "50:50:0:0:0:0"; }, "--mix", "more than five", "80:20:0:0:0"},
      {[](Options& o) { o.mix = "-1:101:0:0:0"; }, "--mix", "'-1:101:0:0:0'", "80:20:0:0:0"},
      {[](Options& o) { o.distribution = "normal"; }, "--distribution", "'normal'",
       "use uniform, zipfian or latest"},
      {[](Options& o) { o.theta = 0; }, "--theta", "0", "use more than 0 and less than 1"},
      {[](Options& o) { o.theta = 1; }, "--theta", "1", "use more than 0 and less than 1"},
      {[](Options& o) { o.theta = std::nan(""); }, "--theta", "nan", "use more than 0"},
      {[](Options& o) { o.storage = "tree"; }, "--storage", "'tree'",
       "use mastertree, array or hash"},
      {[](Options& o) { o.storage = "hash", o.workload = "E"; }, "--storage", "95 % are scans",
       "use mastertree"},
      {[](Options& o) { o.storage = "array", o.workload = "D"; }, "--storage", "5 % are inserts",
       "use mastertree"},
      {[](Options& o) { o.storage = "array", o.blind_updates = true; }, "--blind-updates",
       "reads the page of its record", "use --storage mastertree"},
      {[](Options& o) { o.insert_order = "random"; }, "--insert-order", "'random'",
       "use hashed or ordered"},
  };
  for (const Case& each : cases) {
    Options options;
    each.set(options);
    const Result<JobInput> input = job_input(options);
    ASSERT_FALSE(input.has_value()) << each.flag << " " << each.value;
    EXPECT_EQ(input.error().code, ExitCode::usage);
    const std::string& message = input.error().message;
    EXPECT_TRUE(message.starts_with(std::string("bench ycsb: ") + each.flag + ": ")) << message;
    EXPECT_NE(message.find(each.value), std::string::npos) << message;
    EXPECT_NE(message.find(each.way_out), std::string::npos) << message;
  }
}

TEST(Options, BothEndsOfEveryRangeAreValid) {
  const std::function<void(Options&)> cases[] = {
      [](Options& o) { o.records = 1; },
      [](Options& o) { o.records = kMaxRecords; },
      [](Options& o) { o.record_bytes = 16; },
      [](Options& o) { o.record_bytes = 2'000, o.fields = 100; },
      [](Options& o) { o.remote_percent = 0; },
      [](Options& o) { o.remote_percent = 100; },
      [](Options& o) { o.operations = 1'000, o.scan_length = 1'000; },
      [](Options& o) { o.theta = 0.001; },
      [](Options& o) { o.theta = 0.999; },
      [](Options& o) { o.mix = "20:20:20:20:20"; },
      [](Options& o) { o.storage = "array", o.workload = "F"; },
  };
  for (const auto& set : cases) {
    Options options;
    set(options);
    const Result<JobInput> input = job_input(options);
    ASSERT_TRUE(input.has_value()) << input.error().message;
    const Result<JobInput> parsed = JobInput::parse(input->to_json());
    ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
    EXPECT_EQ(parsed->to_json(), input->to_json());
  }
}

TEST(Cluster, MustHaveARecordForEveryNodeAndNodesForRemoteOperations) {
  Options options;
  options.records = 2;
  EXPECT_TRUE(check_cluster(options, 2).has_value());
  const Result<void> few = check_cluster(options, 3);
  ASSERT_FALSE(few.has_value());
  EXPECT_NE(few.error().message.find("--records: 2 records for 3 nodes"), std::string::npos);
  EXPECT_NE(few.error().message.find("use at least 3"), std::string::npos);
  options.remote_percent = 10;
  EXPECT_TRUE(check_cluster(options, 2).has_value());
  const Result<void> alone = check_cluster(options, 1);
  ASSERT_FALSE(alone.has_value());
  EXPECT_NE(alone.error().message.find("--remote-percent: 10 %"), std::string::npos);
  options.remote_percent = 0;
  EXPECT_TRUE(check_cluster(options, 1).has_value());
}

TEST(Estimate, GrowsWithRecordsAndInserts) {
  Options options;
  const auto estimate_of = [&] { return estimate_memory(options, *job_input(options), 2, 2, 2); };
  const bench::Estimate base = estimate_of();
  EXPECT_EQ(base.insert_bytes, 0u) << "workload A does not insert";
  EXPECT_GT(base.base_bytes, uint64_t{100'000'000});
  options.records *= 2;
  EXPECT_EQ(estimate_of().base_bytes / 2, base.base_bytes);
  options.workload = "D";
  EXPECT_GT(estimate_of().insert_bytes, uint64_t{10} << 20);
  options.workload = "C";
  options.storage = "array";
  EXPECT_LT(estimate_of().base_bytes, 2 * base.base_bytes);
}

TEST(JobInputs, OutOfRangeOrMalformedOnesAreErrorsNotCrashes) {
  EXPECT_FALSE(JobInput::parse("").has_value());
  EXPECT_FALSE(JobInput::parse("{}").has_value());
  EXPECT_FALSE(JobInput::parse("[1,2").has_value());
  const std::function<void(JobInput&)> cases[] = {
      [](JobInput& i) { i.records = 0; },
      [](JobInput& i) { i.shape.fields = 0; },
      [](JobInput& i) { i.shape.record_bytes = 4'000; },
      [](JobInput& i) { i.mix = {100, 100, 0, 0, 0}; },
      [](JobInput& i) { i.theta = 1; },
      [](JobInput& i) { i.operations = 0; },
      [](JobInput& i) { i.distribution = static_cast<Distribution>(7); },
      [](JobInput& i) { i.is_array = true, i.mix = {0, 0, 100, 0, 0}; },
  };
  for (const auto& set : cases) {
    JobInput input;
    set(input);
    EXPECT_FALSE(JobInput::parse(input.to_json()).has_value());
  }
}

}  // namespace
}  // namespace atolldb::ycsb
