// The command `atoll bench gleaner`.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cluster/cli_run.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

class GleanerBenchCommand : public testing::Test {
 protected:
  GleanerBenchCommand() { std::printf("seed: that of TPC-C by default, 1\n"); }

  test::Ran bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "gleaner", "--directory", out_});
    return runner_.atoll(std::move(arguments));
  }

  const test::TestFolder folder_;
  const test::CliRunner runner_{folder_};
  const std::string out_ = folder_.path() + "/out";
};

/// Checks that hold for any log, whatever its figures are.
void expect_sound(const Json& scenario) {
  SCOPED_TRACE(scenario["name"]);
  EXPECT_GT(scenario["records"], 1'000);
  EXPECT_GE(scenario["records"], scenario["records_shipped"]);
  EXPECT_GE(scenario["records_shipped"], scenario["records_composed"]);
  EXPECT_GT(scenario["records_composed"], 0);
  EXPECT_GT(scenario["pages_written"], 0);
  EXPECT_GT(scenario["log_bytes_per_second"], 0.0);
  for (const char* part : {"mapper", "reducer", "composer"}) {
    EXPECT_GT(scenario[part]["records_per_cpu_second"], 0.0) << part;
    EXPECT_GT(scenario[part]["records_per_second"], 0.0) << part;
  }
}

TEST_F(GleanerBenchCommand, GleansTheLogOfTpccWithAndWithoutASnapshotBelow) {
  const std::string file = folder_.path() + "/report.json";
  const test::Ran ran = bench({"--smoke", "--json", file});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("\nmachine: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("recovery without a snapshot: the whole log"), std::string::npos);
  const Json report = Json::parse(test::read_text(file));
  ASSERT_EQ(report["scenarios"].size(), 2u) << report;
  const Json& whole = report["scenarios"][0];
  const Json& since = report["scenarios"][1];
  expect_sound(whole);
  expect_sound(since);
  EXPECT_EQ(whole["name"], "whole_log");
  EXPECT_EQ(whole["base_bytes"], 0);
  EXPECT_EQ(whole["pages_read"], 0);
  EXPECT_GT(whole["sorted_runs"], 0) << "the inbox is small";
  EXPECT_EQ(since["name"], "since_snapshot");
  EXPECT_GT(since["base_bytes"], 1'000'000);
  EXPECT_GT(since["pages_read"], 0);
  EXPECT_LT(since["log_bytes"], whole["log_bytes"]);
  EXPECT_LE(since["log_bytes"], since["read_bytes"]);
  EXPECT_LT(since["records"], whole["records"]) << "the load is in the snapshot";
  EXPECT_TRUE(test::processes_of("gleaner-bench").empty());
  EXPECT_TRUE(std::filesystem::is_empty(out_)) << "nothing is left";
}

TEST_F(GleanerBenchCommand, GleansTheLogOfAStoppedClusterAndLeavesItAsItIs) {
  const std::string config = runner_.config("stopped", "[durability]\nmode = \"durable\"", 1);
  {
    test::CliCluster cluster(runner_, config);
    const test::Ran loaded = runner_.atoll(
        {"bench", "ycsb", "-c", config, "--records", "2000", "--seconds", "1", "--warmup", "0"});
    ASSERT_EQ(loaded.code, 0) << loaded.out << loaded.error;
    ASSERT_EQ(cluster.down().code, 0);
  }
  const std::string data = folder_.path() + "/data/atoll/stopped";
  const std::string file = folder_.path() + "/report.json";
  const test::Ran first = bench({"--data-dir", data, "--repeat", "1", "--json", file});
  ASSERT_EQ(first.code, 0) << first.out << first.error;
  const Json once = Json::parse(test::read_text(file));
  ASSERT_EQ(once["scenarios"].size(), 1u) << once;
  expect_sound(once["scenarios"][0]);
  const test::Ran second = bench({"--data-dir", data, "--repeat", "1", "--json", file});
  ASSERT_EQ(second.code, 0) << second.out << second.error;
  const Json twice = Json::parse(test::read_text(file));
  EXPECT_EQ(once["scenarios"][0]["records"], twice["scenarios"][0]["records"]);
  EXPECT_EQ(runner_.atoll({"up", "-c", config}).code, 0) << "it starts as before";
  EXPECT_EQ(runner_.atoll({"down", "-c", config}).code, 0);
}

TEST_F(GleanerBenchCommand, RefusesBadFlagsWithExitCode2AndLeavesNothing) {
  const std::vector<std::vector<std::string>> bad = {
      {"--record-seconds", "0"}, {"--warehouses", "0"},    {"--repeat", "0"},
      {"--exchange-bytes", "1"}, {"--json", "/no/such/x"},
  };
  for (const std::vector<std::string>& arguments : bad) {
    const test::Ran ran = bench(arguments);
    EXPECT_EQ(ran.code, 2) << arguments.front() << "\n" << ran.out << ran.error;
    EXPECT_NE(ran.error.find(arguments.front()), std::string::npos) << ran.error;
  }
  const test::Ran none = bench({"--data-dir", folder_.path()});
  EXPECT_EQ(none.code, 1) << none.out << none.error;
  EXPECT_NE(none.error.find("no log after its newest snapshot"), std::string::npos) << none.error;
  EXPECT_TRUE(test::processes_of("gleaner-bench").empty());
}

}  // namespace
}  // namespace atolldb
