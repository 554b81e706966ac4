// `atoll top` with real processes: reports for pipes, a terminal, resizes, interrupts, restarts and
// the end of the cluster.
#include <gtest/gtest.h>

#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "shared/client/session_client.h"
#include "shared/kv/kv_request.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/pty_screen.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

const std::string kTopProgram = std::string(ATOLL_BIN_DIR) + "/atoll";

class TopCommandTest : public ::testing::Test {
 protected:
  TopCommandTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  std::string durable_config(const std::string& more = "") const {
    const std::string path = runner_.config("watched", "[durability]\nmode = \"durable\"\n", 1);
    std::string text = read_text(path);
    text.replace(text.find("[nodes]"), 0, more);
    std::ofstream(path) << text;
    return path;
  }
  std::unique_ptr<PtyScreen> top(Words more = {}, uint16_t width = 80, uint16_t height = 24) {
    Words words = {kTopProgram, "top", "--interval", "0.1"};
    words.insert(words.end(), more.begin(), more.end());
    return std::make_unique<PtyScreen>(folder_.path(), words, width, height);
  }
  Json report(Words more) const {
    more.insert(more.begin(), "top");
    const Ran ran = runner_.atoll(more);
    EXPECT_EQ(ran.code, 0) << ran.error;
    return Json::parse(ran.out, nullptr, false);
  }

  TestFolder folder_;
  CliRunner runner_;
};

/// A client that puts records, one after the other, until its destruction.
class PuttingClient {
 public:
  PuttingClient(const CliRunner& runner, const std::string& cluster)
      : thread_([run_dir = runner.folder() + "/atoll/" + cluster](const std::stop_token& stop) {
          const auto session = SessionClient::connect(run_dir, 0);
          if (!session) {
            ADD_FAILURE() << session.error().message;
            return;
          }
          KvRequest request;
          request.put("tree", kv_bytes("key"), kv_bytes("value"));
          while (!stop.stop_requested()) {
            EXPECT_EQ((*session)->call("kv.txn", request.bytes()).status, Status::ok);
          }
        }) {}

 private:
  std::jthread thread_;
};

TEST_F(TopCommandTest, ReportsForPipesAgreeWithTheLoad) {
  const CliCluster cluster(runner_, durable_config());
  ASSERT_EQ(runner_.atoll({"storage", "create", "tree", "--type", "mastertree"}).code, 0);
  const PuttingClient client(runner_, "watched");
  Json json;
  ASSERT_TRUE(eventually([&] {
    json = report({"--once", "--json", "--interval", "0.2"});
    return json.is_object() && json.value("commits_per_s", 0.0) > 0 && !json["procedures"].empty();
  })) << json.dump(2);
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["name"], "watched");
  EXPECT_EQ(json["durability"], "durable");
  EXPECT_EQ(json["sessions"]["open"], 1);
  EXPECT_GT(json["sessions"]["requests_per_s"].get<double>(), 0);
  EXPECT_GT(json["epoch_durable_us"]["count"].get<uint64_t>(), 0u);
  const Json& row = json["procedures"][0];
  EXPECT_EQ(row["name"], "kv.txn");
  EXPECT_GT(row["execution_us"]["count"].get<uint64_t>(), 0u);
  EXPECT_LE(row["execution_us"]["p50"].get<double>(), row["execution_us"]["p99.9"].get<double>());
  EXPECT_EQ(json["session_rows"].size(), 1u);
  EXPECT_EQ(json["storages"][0]["name"], "tree");
  EXPECT_GT(json["storages"][0]["operations_per_s"].get<double>(), 0);

  const Ran text = runner_.atoll({"top", "--batch", "2", "--interval", "0.1"});
  EXPECT_EQ(text.code, 0) << text.error;
  EXPECT_EQ(text.out.find('\033'), std::string::npos);
  const size_t first = text.out.find("atoll top: watched: running, durability durable");
  EXPECT_EQ(first, 0u) << text.out;
  EXPECT_NE(text.out.find("\n\natoll top: watched"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("kv.txn"), std::string::npos) << text.out;
  const Ran lines = runner_.atoll({"top", "--json", "--batch", "2", "--interval", "0.1"});
  std::istringstream stream(lines.out);
  size_t count = 0;
  for (std::string line; std::getline(stream, line); ++count) {
    EXPECT_TRUE(Json::parse(line, nullptr, false).is_object()) << line;
  }
  EXPECT_EQ(count, 2u);
}

TEST_F(TopCommandTest, MistakesAreRefusedWithTheWayOut) {
  EXPECT_EQ(runner_.atoll({"top", "--once"}).code, 3) << "no cluster runs";
  const CliCluster cluster(runner_, runner_.config("quiet", "", 1));
  const Ran piped = runner_.atoll({"top"});
  EXPECT_EQ(piped.code, 2);
  EXPECT_NE(piped.error.find("no terminal: use --once, --batch N or --json"), std::string::npos);
  for (const char* seconds : {"0", "0.09", "3601", "nan"}) {
    const Ran ran = runner_.atoll({"top", "--once", "--interval", seconds});
    EXPECT_EQ(ran.code, 2) << seconds;
    EXPECT_NE(ran.error.find("use 0.1 to 3600 seconds"), std::string::npos) << ran.error;
  }
  EXPECT_EQ(runner_.atoll({"top", "--once", "--batch", "2"}).code, 2);
  EXPECT_EQ(runner_.atoll({"top", "--batch", "0"}).code, 2);
  const Json json = report({"--once", "--json", "--interval", "0.1"});
  EXPECT_TRUE(json["epoch_durable_us"].is_null()) << "durability is off";
}

TEST_F(TopCommandTest, ATerminalHasKeysAndSurvivesEverySize) {
  const CliCluster cluster(runner_, durable_config());
  ASSERT_EQ(runner_.atoll({"storage", "create", "tree", "--type", "mastertree"}).code, 0);
  const PuttingClient client(runner_, "watched");
  const auto screen = top();
  ASSERT_TRUE(screen->shows("kv.txn"));
  ASSERT_TRUE(screen->shows("*COMMIT/s"));
  EXPECT_FALSE(screen->is_restored()) << "ncurses has the terminal";
  screen->type("3");
  ASSERT_TRUE(screen->shows("node0"));
  screen->type("2");
  ASSERT_TRUE(screen->shows("STORAGE"));
  screen->type("\t\t");
  ASSERT_TRUE(screen->shows("SESSION "));
  screen->type("h");
  ASSERT_TRUE(screen->shows("Keys of atoll top"));
  screen->type("h1r<");
  ASSERT_TRUE(screen->shows("*PROCEDURE"));
  screen->type("p");
  ASSERT_TRUE(screen->shows("PAUSED"));
  screen->type("p");
  ASSERT_TRUE(screen->until([](const auto& text) { return !text.contains("PAUSED"); }));
  screen->resize(30, 6);
  ASSERT_TRUE(screen->shows("q quit"));
  ASSERT_TRUE(screen->shows("transactions"));
  screen->resize(1, 1);
  ASSERT_TRUE(screen->until([](const auto& text) { return text == "~\n"; }));
  screen->resize(120, 40);
  ASSERT_TRUE(screen->shows("DUR p50"));
  ASSERT_TRUE(screen->shows("sort  r reverse  q quit"));
  screen->type("q");
  EXPECT_EQ(screen->wait(), 0);
  EXPECT_TRUE(screen->is_restored());
}

TEST_F(TopCommandTest, InterruptsRestoreTheTerminal) {
  const CliCluster cluster(runner_, runner_.config("calm", "", 1));
  const auto interrupted = top();
  ASSERT_TRUE(interrupted->shows("transactions"));
  interrupted->type("\x03");
  EXPECT_EQ(interrupted->wait(), 0);
  EXPECT_TRUE(interrupted->is_restored());
  const auto ended = top();
  ASSERT_TRUE(ended->shows("transactions"));
  kill(ended->pid(), SIGTERM);
  EXPECT_EQ(ended->wait(), 0);
  EXPECT_TRUE(ended->is_restored());
}

TEST_F(TopCommandTest, TheEndOfTheClusterRestoresTheTerminalAndTellsTheReason) {
  const CliCluster cluster(runner_, runner_.config("mortal", "", 1));
  const auto screen = top({}, 250);
  ASSERT_TRUE(screen->shows("transactions"));
  const auto nodes = processes_of("mortal", "node0");
  ASSERT_EQ(nodes.size(), 1u);
  kill(nodes.front(), SIGKILL);
  EXPECT_EQ(screen->wait(), 3) << screen->text();
  EXPECT_TRUE(screen->is_restored());
  EXPECT_TRUE(screen->text().contains("atoll: ")) << screen->text();
  EXPECT_TRUE(screen->text().contains("node0")) << screen->text();
}

TEST_F(TopCommandTest, ARestartOfTheClusterIsShownAndSurvived) {
  const CliCluster cluster(runner_, durable_config("restart = \"recover\"\n"));
  const auto screen = top();
  ASSERT_TRUE(screen->shows("transactions"));
  ASSERT_EQ(runner_.atoll({"storage", "create", "tree", "--type", "mastertree"}).code, 0);
  screen->type("2");
  ASSERT_TRUE(screen->shows("tree"));
  const auto nodes = processes_of("watched", "node0");
  ASSERT_EQ(nodes.size(), 1u);
  kill(nodes.front(), SIGKILL);
  ASSERT_TRUE(screen->until([](const auto& text) { return !text.contains("transactions"); }));
  ASSERT_TRUE(screen->shows("watched: running"));
  ASSERT_TRUE(screen->shows("transactions"));
  ASSERT_TRUE(screen->shows("tree")) << "the rows are those chosen before";
  screen->type("q");
  EXPECT_EQ(screen->wait(), 0);
}

}  // namespace
}  // namespace atolldb::test
