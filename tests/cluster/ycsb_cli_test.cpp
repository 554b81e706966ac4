// The command `atoll bench ycsb`.
#include <gtest/gtest.h>

#include "tests/cluster/cli_run.h"

namespace atolldb {
namespace {

class YcsbCommand : public testing::Test {
 protected:
  test::Ran bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "ycsb"});
    return runner_.atoll(std::move(arguments));
  }

  const test::TestFolder folder_;
  const test::CliRunner runner_{folder_};
};

TEST_F(YcsbCommand, RefusesEveryBadFlagWithExitCode2AndLeavesNothing) {
  const std::vector<std::vector<std::string>> bad = {
      {"--nodes", "256"},
      {"--workers-per-node", "-1"},
      {"--records", "0"},
      {"--records", "-1"},
      {"--records", "many"},
      {"--nodes", "4", "--records", "3"},
      {"--record-bytes", "15"},
      {"--record-bytes", "-1"},
      {"--fields", "7"},
      {"--fields", "0"},
      {"--operations", "0"},
      {"--operations", "1001"},
      {"--scan-length", "0"},
      {"--workload", "G"},
      {"--mix", "50:50"},
      {"--mix", "80:20:0:0:0", "--workload", "A"},
      {"--distribution", "flat"},
      {"--theta", "1"},
      {"--theta", "x"},
      {"--remote-percent", "101"},
      {"--remote-percent", "-1"},
      {"--nodes", "1", "--remote-percent", "1"},
      {"--storage", "tree"},
      {"--storage", "hash", "--workload", "E"},
      {"--storage", "array", "--workload", "E"},
      {"--insert-order", "later"},
      {"--durability", "sometimes"},
      {"--seconds", "0"},
      {"--warmup", "86401"},
      {"--repeat", "0"},
      {"--seed", "-1"},
      {"--json", "/no/such/x"},
      {"--no-such-flag"},
  };
  for (const std::vector<std::string>& arguments : bad) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    const test::Ran ran = bench(arguments);
    EXPECT_EQ(ran.code, 2) << line << "\n" << ran.out << ran.error;
    EXPECT_TRUE(ran.error.starts_with("atoll: ")) << line << "\n" << ran.error;
    EXPECT_NE(
        ran.error.find(arguments.front() == "--nodes" && arguments.size() > 2 ? arguments[2]
                                                                              : arguments.front()),
        std::string::npos)
        << line << "\n"
        << ran.error;
  }
  EXPECT_TRUE(test::processes_of("ycsb-bench").empty());
}

TEST_F(YcsbCommand, RunsOnAClusterOfItsOwnVerifiesAndWritesJson) {
  const std::string file = folder_.path() + "/report.json";
  const test::Ran ran = bench({"--mix", "40:20:10:10:20", "--operations", "3", "--records", "20000",
                               "--fields", "5", "--seconds", "1", "--warmup", "0", "--json", file});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("memory estimate: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("transactions/s committed (durability durable)"), std::string::npos);
  EXPECT_NE(ran.out.find("verify: every record exists once and is whole, and no update was lost"),
            std::string::npos)
      << ran.out;
  const auto json = nlohmann::json::parse(test::read_text(file));
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_GT(json["throughput_tps"], 0.0);
  EXPECT_DOUBLE_EQ(json["operations_per_second"], 3 * json["throughput_tps"].get<double>());
  EXPECT_EQ(json["config"]["records"], 20'000);
  EXPECT_GT(json["remote_accesses"], 0);
  EXPECT_TRUE(test::processes_of("ycsb-bench").empty());
}

TEST_F(YcsbCommand, RunsOnARunningClusterTwiceTheSecondTimeSayingWhatIsInTheWay) {
  test::CliCluster cluster(runner_, runner_.config("busy"));
  const std::vector<std::string> arguments = {
      "--workload", "silor",    "--storage", "array",    "--records", "10000",     "--seconds",
      "1",          "--warmup", "0",         "--repeat", "2",         "--cluster", "busy"};
  const test::Ran first = bench(arguments);
  EXPECT_EQ(first.code, 0) << first.out << first.error;
  EXPECT_NE(first.out.find("median of 2 runs"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("no update was lost"), std::string::npos) << first.out;
  const test::Ran second = bench(arguments);
  EXPECT_EQ(second.code, 1) << second.out << second.error;
  EXPECT_NE(second.error.find("ycsb_records"), std::string::npos) << second.error;
}

TEST_F(YcsbCommand, EndsWithExitCode6WhenThePoolOfTheConfigIsTooSmall) {
  const std::string config = runner_.config("small", "", 1);
  const test::Ran ran = bench({"-c", config, "--mix", "0:0:100:0:0", "--records", "1000",
                               "--seconds", "600", "--warmup", "0"});
  EXPECT_EQ(ran.code, 6) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("the volatile pool of node 0 is full"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("no update was lost"), std::string::npos) << ran.out;
  EXPECT_TRUE(test::processes_of("small").empty());
}

}  // namespace
}  // namespace atolldb
