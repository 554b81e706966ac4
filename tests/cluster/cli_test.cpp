// Command line with real processes: output, exit codes, and what a command leaves behind.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "tests/cluster/cli_run.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

struct BadInput {
  std::vector<std::string> arguments;
  int code;
  std::string message;  // a part of standard error
};

class CliTest : public ::testing::Test {
 protected:
  CliTest() : runner_(folder_) { std::printf("seed: none, nothing here is random\n"); }

  void expect_refused(const BadInput& input) const {
    std::string line = "atoll";
    for (const std::string& word : input.arguments) line += " " + word;
    const Ran ran = runner_.atoll(input.arguments);
    EXPECT_EQ(ran.code, input.code) << line << "\n" << ran.error;
    EXPECT_NE(ran.error.find(input.message), std::string::npos)
        << line << ": expected \"" << input.message << "\" in\n"
        << ran.error;
    EXPECT_EQ(ran.out, "") << line;
  }

  TestFolder folder_;
  CliRunner runner_;
};

TEST_F(CliTest, RefusesBadCommandLinesWithTheRightExitCodeAndMessage) {
  const std::string none = folder_.path() + "/none.toml";
  const std::string wrong = runner_.config("wrong", "[cluste]\n");
  const std::string large = runner_.config("large", "write_set = 65536");
  const std::string idle = runner_.config("idle");
  const BadInput inputs[] = {
      {{},
       2,
       "atoll: no command given: choose one of up, status, top, down, logs, wal, snapshot, "
       "checkpoint, backup, restore, export, import, data, storage, procedure, session, keys, kv, "
       "shell, bench, demo, config, doctor, version: see `atoll --help`\n"},
      {{"strat"},
       2,
       "atoll: \"strat\": no such command: did you mean \"status\"? see `atoll --help`\n"},
      {{"start"}, 2, "\"start\": no such command: did you mean \"up\"? see `atoll --help`\n"},
      {{"frobnicate"},
       2,
       "\"frobnicate\": no such command: choose one of up, status, top, down, logs, wal, "
       "snapshot, checkpoint, backup, restore, export, import, data, storage, procedure, session, "
       "keys, kv, shell, bench, demo, config, doctor, version: see `atoll --help`\n"},
      {{"storage", "list"},
       2,
       "atoll: \"storage list\": no such command: did you mean \"storage ls\"? see `atoll "
       "storage --help`\n"},
      {{"status", "--clutser", "x"},
       2,
       "atoll: \"--clutser\": no such option of `atoll status`: did you mean \"--cluster\"? see "
       "`atoll status --help`\n"},
      {{"storage", "create", "t", "--tpye=array"}, 2, "did you mean \"--type\"? see"},
      {{"--cluster", "x", "status"},
       2,
       "\"--cluster\": no such option of `atoll`: options must follow the command: see `atoll "
       "--help`\n"},
      {{"up", "--frobnicate"},
       2,
       "\"--frobnicate\": no such option of `atoll up`: see `atoll up --help`\n"},
      {{"up", "-c"}, 2, "--config"},
      {{"up", "-c", none}, 78, none},
      {{"up", "-c", wrong}, 78, wrong + ":"},
      {{"up", "-c", idle, "--cluster", "other"}, 2, "is the config of \"idle\""},
      {{"up", "--cluster", "no/name"}, 2, "--cluster no/name: expected"},
      {{"config"},
       2,
       "atoll: config: no command given: choose one of check, show, reload: see `atoll config "
       "--help`\n"},
      {{"config", "check"}, 2, "FILE"},
      {{"config", "check", none}, 78, none},
      {{"config", "check", wrong}, 78, "cluste"},
      {{"config", "show", wrong}, 78, "cluste"},
      {{"config", "check", large},
       78,
       "large.toml:11:13: memory.write_set: expected an integer from 16 to 65535, got 65536"},
      {{"status"}, 3, "atoll: no cluster runs: start one with `atoll up`"},
      {{"status", "--cluster", "idle"}, 3, "atoll: cluster \"idle\": not running"},
      {{"status", "-c", idle}, 3, "atoll: cluster \"idle\": not running"},
      {{"down"}, 3, "no cluster runs"},
      {{"down", "-c", idle}, 3, "not running"},
      {{"logs", "-c", idle}, 3, "has no logs in"},
      {{"logs", "node7", "-c", idle}, 2, "choose one of launcher, coordinator, node0, node1"},
      {{"logs", "-n", "many", "-c", idle}, 2, "see `atoll logs --help`"},
      {{"storage"}, 2, "see `atoll storage --help`"},
      {{"storage", "ls"}, 3, "no cluster runs"},
      {{"storage", "create", "t"}, 2, "--type"},
      {{"storage", "create", "t", "--type", "heap"}, 2, "heap"},
      {{"storage", "create", "t", "--type", "array", "--records", "-1"}, 2, "--records"},
      {{"procedure", "ls"}, 3, "no cluster runs"},
      {{"procedure", "call"}, 2, "NAME"},
      {{"procedure", "call", "p", "--input-file", none}, 2, "cannot be read"},
      {{"procedure", "call", "p", "x", "--input-file", none}, 2, "excludes"},
      {{"version", "now"}, 2, "\"now\": one argument too many: see `atoll version --help`\n"},
  };
  for (const BadInput& input : inputs) expect_refused(input);
}

TEST_F(CliTest, HelpAndDoctorAndConfigNeedNoCluster) {
  EXPECT_EQ(runner_.atoll({"--help"}).code, 0);
  EXPECT_NE(runner_.atoll({"--help"}).out.find("78 config"), std::string::npos);
  EXPECT_EQ(runner_.atoll({"storage", "create", "--help"}).code, 0);
  const Ran doctor = runner_.atoll({"doctor"});
  EXPECT_EQ(doctor.code, 0) << doctor.error;
  EXPECT_NE(doctor.out.find("clock source"), std::string::npos) << doctor.out;
  const std::string file = runner_.config("c1");
  EXPECT_NE(runner_.atoll({"config", "check", file}).out.find("valid"), std::string::npos);
  const Ran unused = runner_.atoll({"config", "check", file, "--set", "durability.scheme=silor",
                                    "--set", "gleaner.interval=1h"});
  EXPECT_EQ(unused.code, 0) << unused.error;
  EXPECT_NE(unused.error.find("warning: gleaner.interval: \"1h\" has no effect"), std::string::npos)
      << unused.error;
  const Ran show = runner_.atoll({"config", "show", file});
  EXPECT_NE(show.out.find("c1.toml:2"), std::string::npos) << show.out;
}

TEST_F(CliTest, VersionIsTheProjectsAndTheTextsNameTheSame) {
  const Ran version = runner_.atoll({"version"});
  EXPECT_EQ(version.code, 0) << version.error;
  EXPECT_EQ(runner_.atoll({"--version"}).out, version.out);
  const std::regex lines(
      "atoll (\\d+\\.\\d+\\.\\d+)\n"
      "  procedure ABI      \\d+\\.\\d+\n"
      "  procedure API      \\d+\n"
      "  memory layout      \\d+ \\([0-9a-f]{16}\\)\n"
      "  control messages   \\d+\n"
      "  compiler           \\S[^\n]*\n");
  std::smatch found;
  ASSERT_TRUE(std::regex_match(version.out, found, lines)) << version.out;
  const std::string number = found[1];
  // CMakeLists.txt defines the version of the project. The other files repeat it for readers.
  const auto text = [](const char* file) {
    return read_text(std::string(ATOLL_SOURCE_DIR) + "/" + file);
  };
  EXPECT_NE(text("CMakeLists.txt").find("project(Atoll VERSION " + number + " "), std::string::npos)
      << number;
  EXPECT_NE(text("README.md").find("research engine (" + number), std::string::npos) << number;
  const std::string changes = text("ops/CHANGELOG.md");
  const size_t newest = changes.find("\n## ");
  ASSERT_NE(newest, std::string::npos);
  EXPECT_EQ(changes.substr(newest, 4 + number.size() + 1), "\n## " + number + " ");
}

TEST_F(CliTest, AClusterStartsSaysHowItIsAndStopsWithNothingLeft) {
  const std::string file = runner_.config("life");
  CliCluster cluster(runner_, file);
  EXPECT_NE(cluster.up().out.find("in memory only: down loses the data"), std::string::npos);
  EXPECT_NE(cluster.up().out.find("node1"), std::string::npos) << cluster.up().out;

  const Ran again = runner_.atoll({"up", "-c", file});
  EXPECT_EQ(again.code, 4) << again.error;
  EXPECT_NE(again.error.find("runs already, with pid"), std::string::npos) << again.error;

  const Ran status = runner_.atoll({"status"});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(status.out.find("cluster \"life\" is healthy"), 0u) << status.out;
  EXPECT_NE(status.out.find("transactions/s (durability off"), std::string::npos) << status.out;
  EXPECT_EQ(status.out.find('\033'), std::string::npos) << "colours without a terminal";

  const Json json = cluster.status();
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["healthy"], true);
  EXPECT_EQ(json["state"], "running");
  EXPECT_EQ(json["durability"], "off");
  EXPECT_EQ(json["nodes"].size(), 2u);
  EXPECT_EQ(json["processes"].size(), 3u);

  const Ran logs = runner_.atoll({"logs", "node0"});
  EXPECT_EQ(logs.code, 0) << logs.error;
  EXPECT_NE(logs.out.find("node 0 runs"), std::string::npos) << logs.out;

  const Ran down = cluster.down();
  EXPECT_EQ(down.code, 0) << down.error;
  EXPECT_NE(down.out.find("cluster \"life\" has stopped"), std::string::npos);
  EXPECT_TRUE(processes_of("life").empty());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() + "/atoll/life"));
  EXPECT_EQ(runner_.atoll({"status", "-c", file}).code, 3);
}

TEST_F(CliTest, TwoClustersRunSideBySideAndHaveToBeChosen) {
  CliCluster east(runner_, runner_.config("east", "", 1));
  CliCluster west(runner_, runner_.config("west", "", 1));
  expect_refused({{"status"}, 2, "atoll: several clusters run (east, west): choose one"});
  expect_refused({{"down"}, 2, "several clusters run"});
  const Ran created =
      runner_.atoll({"storage", "create", "here", "--type", "mastertree", "--cluster", "west"});
  EXPECT_EQ(created.code, 0) << created.error;
  EXPECT_EQ(east.status()["storages"].size(), 0u);
  EXPECT_EQ(west.status()["storages"].size(), 1u);
  EXPECT_EQ(east.down().code, 0);
  EXPECT_EQ(runner_.atoll({"status"}).out.find("cluster \"west\""), 0u);
}

TEST_F(CliTest, StoragesAreCreatedListedDescribedAndDropped) {
  CliCluster cluster(runner_, runner_.config("ddl"));
  const Ran created = runner_.atoll({"storage", "create", "accounts", "--type", "array",
                                     "--payload-bytes", "8", "--records", "1000"});
  EXPECT_EQ(created.code, 0) << created.error;
  const Ran list = runner_.atoll({"storage", "ls", "--json"});
  const Json storages = Json::parse(list.out, nullptr, false);
  ASSERT_TRUE(storages.is_object()) << list.out;
  EXPECT_EQ(storages["storages"][0]["name"], "accounts");
  EXPECT_EQ(storages["storages"][0]["record_count"], 1000);
  const Json no_pages = {{"used_bytes", 0}, {"pages_read", 0}, {"evictions", 0}};
  EXPECT_EQ(storages["storages"][0]["snapshot_cache"], no_pages);
  EXPECT_EQ(cluster.status()["storages"][0]["snapshot_cache"], no_pages);
  const Ran described = runner_.atoll({"storage", "describe", "accounts"});
  EXPECT_NE(described.out.find("accounts  array"), std::string::npos) << described.out;
  EXPECT_NE(described.out.find("CACHED  PAGES READ  EVICTIONS"), std::string::npos)
      << described.out;
  const Ran as_json = runner_.atoll({"storage", "describe", "accounts", "--json"});
  EXPECT_EQ(Json::parse(as_json.out, nullptr, false)["snapshot_cache"], no_pages) << as_json.out;
  const BadInput inputs[] = {
      {{"storage", "create", "accounts", "--type", "mastertree"}, 1, "accounts"},
      {{"storage", "describe", "none"}, 1, "storage \"none\": does not exist"},
      {{"storage", "drop", "none"}, 1, "none"},
      {{"procedure", "call", "none"}, 1, "none"},
      {{"procedure", "ls", "--node", "2"}, 2, "has nodes 0 to 1"},
  };
  for (const BadInput& input : inputs) expect_refused(input);
  const Ran dropped = runner_.atoll({"storage", "drop", "accounts"});
  EXPECT_EQ(dropped.code, 0) << dropped.error;
  EXPECT_EQ(cluster.status()["storages"].size(), 0u);
}

TEST_F(CliTest, AfterADeathStatusTellsWhoDiedAndHow) {
  const std::string file = runner_.config("dead");
  CliCluster cluster(runner_, file);
  const std::vector<pid_t> nodes = processes_of("dead", "node1");
  ASSERT_EQ(nodes.size(), 1u);
  kill(nodes.front(), SIGKILL);
  const std::string note = folder_.path() + "/atoll/dead.last_failure.json";
  ASSERT_TRUE(eventually([&] { return std::filesystem::exists(note); }));
  const Ran status = runner_.atoll({"status", "--json", "-c", file});
  EXPECT_EQ(status.code, 3);
  EXPECT_NE(
      status.error.find("node1 (pid " + std::to_string(nodes.front()) + ") was killed by SIGKILL"),
      std::string::npos)
      << status.error;
  const Json json = Json::parse(status.out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << status.out;
  EXPECT_EQ(json["state"], "not_running");
  EXPECT_TRUE(json["last_failure"].is_string());
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 3);
}

TEST_F(CliTest, ACoordinatorThatDoesNotAnswerIsNoSilentHang) {
  const std::string file = runner_.config("mute", "[log]\nlevel = \"info\"");
  CliCluster cluster(runner_, file);
  const std::vector<pid_t> coordinators = processes_of("mute", "coordinator");
  ASSERT_EQ(coordinators.size(), 1u);
  kill(coordinators.front(), SIGSTOP);
  expect_refused({{"status", "-c", file}, 5, "the coordinator does not answer"});
  // The launcher stops the cluster without the coordinator's help.
  const Ran down = runner_.atoll({"down", "--now", "-c", file});
  EXPECT_EQ(down.code, 0) << down.error;
  EXPECT_TRUE(eventually([] { return processes_of("mute").empty(); }));
}

TEST_F(CliTest, ATakenMetricsPortIsNamedWithItsKey) {
  CliCluster first(runner_, runner_.config("first", "[metrics]\nbase_port = 29471"));
  const Ran second = runner_.atoll({"up", "-c",
                                    runner_.config("second",
                                                   "[metrics]\nbase_port = 29471\n"
                                                   "on_taken_port = \"stop\"")});
  EXPECT_EQ(second.code, 6) << second.error;
  EXPECT_NE(second.error.find("metrics.base_port"), std::string::npos) << second.error;
  EXPECT_NE(second.error.find(":2947"), std::string::npos) << second.error;
  EXPECT_TRUE(processes_of("second").empty());
}

}  // namespace
}  // namespace atolldb::test
