// The command `atoll bench tpcc`.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cluster/cli_run.h"

namespace atolldb {
namespace {

class TpccCommand : public testing::Test {
 protected:
  test::Ran bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "tpcc"});
    return runner_.atoll(std::move(arguments));
  }

  const test::TestFolder folder_;
  const test::CliRunner runner_{folder_};
};

TEST_F(TpccCommand, RefusesEveryBadFlagWithExitCode2AndLeavesNothing) {
  const std::vector<std::vector<std::string>> bad = {
      {"--nodes", "256"},
      {"--nodes", "-1"},
      {"--nodes", "two"},
      {"--nodes", "1.5"},
      {"--workers-per-node", "251"},
      {"--workers-per-node", "-1"},
      {"--warehouses", "65536"},
      {"--warehouses", "-1"},
      {"--nodes", "4", "--warehouses", "3"},
      {"--seconds", "0"},
      {"--seconds", "86401"},
      {"--seconds", "ten"},
      {"--warmup", "86401"},
      {"--warmup", "-1"},
      {"--repeat", "0"},
      {"--repeat", "1001"},
      {"--remote-percent", "101"},
      {"--remote-percent", "-1"},
      {"--remote-percent", "1%"},
      {"--remote-payment-percent", "101"},
      {"--remote-payment-percent", "-1"},
      {"--mix", "45/43/4/4"},
      {"--mix", "45/43/4/4/5"},
      {"--mix", "a/b/c/d/e"},
      {"--mix", ""},
      {"--cold", "--durability", "off"},
      {"--cold", "--durability", "measure"},
      {"--seed", "-1"},
      {"--seed", "x"},
      {"--durability", "sometimes"},
      {"--json", "/no/such/folder/report.json"},
      {"--json"},
      {"--no-such-flag"},
      {"surplus"},
  };
  for (const std::vector<std::string>& arguments : bad) {
    std::string line;
    for (const std::string& argument : arguments) line += argument + " ";
    const test::Ran ran = bench(arguments);
    EXPECT_EQ(ran.code, 2) << line << "\n" << ran.out << ran.error;
    EXPECT_TRUE(ran.error.starts_with("atoll: ")) << line << "\n" << ran.error;
  }
  EXPECT_TRUE(test::processes_of("tpcc-bench").empty());
}

TEST_F(TpccCommand, RunsOnAClusterOfItsOwnVerifiesAndWritesJson) {
  const std::string file = folder_.path() + "/report.json";
  const test::Ran ran = bench({"--seconds", "1", "--warmup", "0", "--json", file});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("memory estimate: "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("transactions/s committed (durability durable)"), std::string::npos);
  EXPECT_NE(ran.out.find("consistency conditions 1-12 hold for all 2 warehouses"),
            std::string::npos)
      << ran.out;
  const auto json = nlohmann::json::parse(test::read_text(file));
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["nodes"], 2);
  EXPECT_GT(json["throughput_tps"], 0.0);
  EXPECT_EQ(json["config"]["warehouses"], 2);
  // The full population of clause 4.3.3.1 of the TPC-C specification.
  EXPECT_GT(json["storage_bytes"]["tpcc_stock_static"], 2ull * 100'000 * 304);
  EXPECT_TRUE(test::processes_of("tpcc-bench").empty());
}

TEST_F(TpccCommand, RunsOnWhatASecondClusterFindsInASnapshot) {
  const std::string file = folder_.path() + "/report.json";
  // The estimate still sizes the cache of snapshot pages.
  const test::Ran ran = bench({"--cold", "--seconds", "1", "--warmup", "0", "--json", file, "--set",
                               "memory.volatile_pool=512MiB"});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_EQ(ran.out.find("memory.snapshot_cache is "), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2 warehouses in a snapshot"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("consistency conditions 1-12 hold for all 2 warehouses"),
            std::string::npos)
      << ran.out;
  const auto json = nlohmann::json::parse(test::read_text(file));
  EXPECT_EQ(json["config"]["cold"], true);
  EXPECT_GT(json["throughput_tps"], 0.0);
  EXPECT_TRUE(test::processes_of("tpcc-bench").empty());
}

TEST_F(TpccCommand, ObeysSettingsOfTheLogFolderAndOfThePool) {
  const std::string logs = folder_.path() + "/own-logs";
  const test::Ran ran =
      bench({"--nodes", "1", "--seconds", "1", "--warmup", "0", "--durability", "off", "--set",
             "cluster.log_dir=" + logs, "--set", "memory.volatile_pool=16MiB"});
  EXPECT_EQ(ran.code, 6) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("memory.volatile_pool is "), std::string::npos) << ran.out;
  EXPECT_TRUE(std::filesystem::exists(logs + "/node0.log")) << "the folder is kept";
  EXPECT_TRUE(test::processes_of("tpcc-bench").empty());
}

TEST_F(TpccCommand, EndsWithExitCode6WhenThePoolOfTheConfigIsTooSmall) {
  // 128 MiB are enough to load a warehouse, and for some seconds of transactions.
  const std::string config = folder_.path() + "/small.toml";
  std::ofstream(config) << "[cluster]\nname = \"small\"\n[nodes]\ncount = 1\n"
                        << "[memory]\nvolatile_pool = \"128MiB\"\n"
                        // With a log, snapshots would free pages, and the benchmark would continue.
                        << "[durability]\nmode = \"off\"\n";
  const test::Ran ran = bench({"-c", config, "--seconds", "600", "--warmup", "0"});
  EXPECT_EQ(ran.code, 6) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("the volatile pool of node 0 is full"), std::string::npos) << ran.out;
  EXPECT_NE(ran.error.find("ended early"), std::string::npos) << ran.error;
  EXPECT_TRUE(test::processes_of("small").empty());
}

TEST_F(TpccCommand, EndsWithExitCode6WhenNotEvenTheLoadFits) {
  const std::string config = runner_.config("tiny", "", 1);
  const test::Ran ran = bench({"-c", config, "--seconds", "1", "--warmup", "0"});
  EXPECT_EQ(ran.code, 6) << ran.out << ran.error;
  EXPECT_NE(ran.error.find("the volatile pool of node 0 is full"), std::string::npos) << ran.error;
  EXPECT_TRUE(test::processes_of("tiny").empty());
}

}  // namespace
}  // namespace atolldb
