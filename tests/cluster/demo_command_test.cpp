// `atoll demo` with real processes: what it prints, Ctrl-C, what it removes, and the commands that
// it suggests.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/pty_screen.h"

namespace atolldb::test {
namespace {

using Words = std::vector<std::string>;

const std::string kDemoProgram = std::string(ATOLL_BIN_DIR) + "/atoll";

class DemoCommandTest : public ::testing::Test {
 protected:
  DemoCommandTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  std::string place() const { return folder_.path() + "/place"; }
  /// Returns the words of the suggested command that begins with these.
  static Words suggested(const std::string& out, const std::string& begin) {
    std::istringstream lines(out);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  atoll " + begin)) continue;
      std::istringstream words(line.substr(8));  // after "  atoll "
      Words found;
      // The explanation follows after several blanks.
      const size_t end = line.find("  ", 8);
      std::istringstream command(line.substr(8, end == std::string::npos ? end : end - 8));
      for (std::string word; command >> word;) found.push_back(word);
      return found;
    }
    ADD_FAILURE() << "no suggestion begins with " << begin << " in\n" << out;
    return {"version"};
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(DemoCommandTest, ItEndsAfterItsTimeWithACorrectSumAndLeavesNothing) {
  const Ran ran = runner_.atoll({"demo", "--seconds", "1", "--dir", place(), "--rate", "500"});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.error;
  EXPECT_NE(ran.out.find("cluster \"demo\" runs"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("status page  http://127.0.0.1:"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("sum of all balances: correct\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find(" failed"), std::string::npos) << ran.out;
  std::istringstream lines(ran.out);
  size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    if (!line.contains('/')) {
      EXPECT_LE(line.size(), 80u) << line;  // paths may be longer
    }
  }
  EXPECT_LE(count, 24u);
  EXPECT_FALSE(std::filesystem::exists(place()));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/atoll/demo"));
  EXPECT_TRUE(processes_of("demo").empty());
}

TEST_F(DemoCommandTest, ItsSuggestionsWorkAndCtrlCEndsIt) {
  PtyScreen screen(folder_.path(), {kDemoProgram, "demo", "--dir", place(), "--rate", "500"});
  ASSERT_TRUE(screen.shows("Ctrl-C ends the demo."));
  ASSERT_TRUE(screen.shows("sum of all balances: correct"));
  const std::string text = screen.text();
  for (const char* begin : {"status", "kv get", "kv scan", "session ls", "snapshot take"}) {
    const Ran ran = runner_.atoll(suggested(text, begin));
    EXPECT_EQ(ran.code, 0) << begin << ": " << ran.error;
    EXPECT_FALSE(ran.out.empty()) << begin;
  }
  Words top = suggested(text, "top");
  top.push_back("--once");
  const Ran once = runner_.atoll(top);
  EXPECT_EQ(once.code, 0) << once.error;
  EXPECT_NE(once.out.find("kv.txn"), std::string::npos) << once.out;
  screen.type("\x03");
  EXPECT_EQ(screen.wait(), 0) << screen.text();
  EXPECT_TRUE(processes_of("demo").empty());
  EXPECT_FALSE(std::filesystem::exists(place()));
}

TEST_F(DemoCommandTest, AKeptDemoStartsAgainWithItsData) {
  const Ran ran =
      runner_.atoll({"demo", "--seconds", "1", "--dir", place(), "--keep", "--rate", "100"});
  ASSERT_EQ(ran.code, 0) << ran.error;
  const size_t at = ran.out.find("atoll up -c ");
  ASSERT_NE(at, std::string::npos) << ran.out;
  const size_t begin = at + 12;
  const std::string file = ran.out.substr(begin, ran.out.find('`', begin) - begin);
  const CliCluster cluster(runner_, file);
  const Ran balance =
      runner_.atoll({"kv", "get", "accounts", "account-042", "--value-format", "i64"});
  EXPECT_EQ(balance.code, 0) << balance.error;
}

TEST_F(DemoCommandTest, TwoDemosRunBesideEachOther) {
  PtyScreen first(folder_.path(), {kDemoProgram, "demo", "--dir", place(), "--rate", "100"}, 200);
  ASSERT_TRUE(first.shows("cluster \"demo\" runs"));
  const Ran second = runner_.atoll({"demo", "--seconds", "1", "--dir", place(), "--rate", "100"});
  EXPECT_EQ(second.code, 0) << second.error;
  EXPECT_NE(second.out.find("cluster \"demo-2\" runs"), std::string::npos) << second.out;
  EXPECT_NE(second.out.find("--cluster demo-2"), std::string::npos) << "two clusters run";
  // The demo ends when its cluster is stopped by another command.
  EXPECT_EQ(runner_.atoll({"down", "--cluster", "demo"}).code, 0);
  EXPECT_EQ(first.wait(), 3) << first.text();
  EXPECT_TRUE(first.text().contains("the cluster has ended before the demo")) << first.text();
}

TEST_F(DemoCommandTest, MistakesAreRefused) {
  for (const Words& bad : std::vector<Words>{
           {"--rate", "0"}, {"--rate", "1000001"}, {"--seconds", "86401"}, {"--seconds", "-1"}}) {
    Words words = {"demo", "--dir", place()};
    words.insert(words.end(), bad.begin(), bad.end());
    EXPECT_EQ(runner_.atoll(words).code, 2) << bad.back();
  }
  const Ran nowhere = runner_.atoll({"demo", "--dir", "/proc/none"});
  EXPECT_NE(nowhere.code, 0);
  EXPECT_NE(nowhere.error.find("give another --dir"), std::string::npos) << nowhere.error;
}

}  // namespace
}  // namespace atolldb::test
