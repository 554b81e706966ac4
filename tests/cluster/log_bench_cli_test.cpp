// The command `atoll bench log`.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/cluster/cli_run.h"

namespace atolldb {
namespace {

class LogBenchCommand : public testing::Test {
 protected:
  LogBenchCommand() { std::printf("seed: that of TPC-C by default, 1\n"); }

  test::Ran bench(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"bench", "log", "--directory", folder_.path() + "/out"});
    return runner_.atoll(std::move(arguments));
  }
  std::vector<std::string> kept() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/out")) {
      found.push_back(entry.path().string());
    }
    return found;
  }

  const test::TestFolder folder_;
  const test::CliRunner runner_{folder_};
};

TEST_F(LogBenchCommand, WritesRecordsOfTpccThatAtollLogVerifyFindsIntact) {
  const std::string file = folder_.path() + "/report.json";
  const test::Ran ran = bench({"--smoke", "--keep", "--json", file});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("log records/s by one logger (posix)"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\nmachine: "), std::string::npos) << ran.out;
  const auto json = nlohmann::json::parse(test::read_text(file));
  EXPECT_EQ(json["verified"], true);
  EXPECT_GT(json["records"], 100'000);
  EXPECT_GT(json["recording"]["blocks"], 100);
  EXPECT_TRUE(test::processes_of("log-bench").empty());

  ASSERT_EQ(kept().size(), 1u);
  const test::Ran verified =
      runner_.atoll({"wal", "verify", "--json", "--data-dir", kept().front()});
  EXPECT_EQ(verified.code, 0) << verified.out << verified.error;
  uint64_t records = 0;
  const auto log = nlohmann::json::parse(verified.out)["incarnations"][0]["logs"][0];
  for (const auto& each : log["files"]) records += each["records"].get<uint64_t>();
  EXPECT_EQ(json["records"], records);
  EXPECT_EQ(log["end"]["kind"], "end");

  // Replays the records of the existing log. The second run leaves no log of its own.
  const test::Ran again = bench({"--smoke", "--data-dir", kept().front(), "--backend", "null"});
  EXPECT_EQ(again.code, 0) << again.out << again.error;
  EXPECT_NE(again.out.find("verify: not done"), std::string::npos) << again.out;
  EXPECT_EQ(kept().size(), 1u);
}

TEST_F(LogBenchCommand, RefusesBadFlagsWithExitCode2AndLeavesNothing) {
  const std::vector<std::vector<std::string>> bad = {
      {"--seconds", "0"},     {"--record-seconds", "0"}, {"--workers", "251"},
      {"--backend", "disk"},  {"--epoch-bytes", "1"},    {"--file-bytes", "1048577"},
      {"--most-bytes", "-1"}, {"--json", "/no/such/x"},  {"--buffer-bytes", "4096"},
  };
  for (const std::vector<std::string>& arguments : bad) {
    const test::Ran ran = bench(arguments);
    EXPECT_EQ(ran.code, 2) << arguments.front() << "\n" << ran.out << ran.error;
    EXPECT_NE(ran.error.find(arguments.front()), std::string::npos) << ran.error;
  }
  const test::Ran none = bench({"--data-dir", folder_.path()});
  EXPECT_EQ(none.code, 1) << none.out << none.error;
  EXPECT_NE(none.error.find("no log records there"), std::string::npos) << none.error;
  EXPECT_TRUE(kept().empty());
  EXPECT_TRUE(test::processes_of("log-bench").empty());
}

}  // namespace
}  // namespace atolldb
