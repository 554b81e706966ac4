// Finding a cluster (R63): the same config file finds the same cluster in every environment and for
// every permitted user. This holds also when the run folder was deleted.
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ops/launcher/cluster_note.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

constexpr uid_t kOther = 54'321;  // not a user of this machine
constexpr uid_t kThird = 54'322;

std::string program() { return std::string(ATOLL_BIN_DIR) + "/atoll"; }

class FindClusterTest : public ::testing::Test {
 protected:
  FindClusterTest() {
    std::printf("seed: none, nothing here is random\n");
    std::filesystem::permissions(folder_.path(), std::filesystem::perms(0755));
  }

  /// Writes a config with its own folders, except the run folder: that one depends on the
  /// environment.
  std::string config(const std::string& name, bool is_durable) const {
    const std::string root = folder_.path() + "/" + name;
    std::string path = root + ".toml";
    std::ofstream(path) << "[cluster]\nname = \"" << name << "\"\nlog_dir = \"" << root
                        << ".log\"\ndata_dir = \"" << root << ".data\"\n[nodes]\ncount = 1\n"
                        << "[durability]\nmode = \"" << (is_durable ? "durable" : "off")
                        << "\"\nlog_file_size = \"1MiB\"\n[memory]\nvolatile_pool = \"8MiB\"\n"
                        << "log_buffer = \"2MiB\"\nexchange = \"2MiB\"\n";
    return path;
  }
  /// Runs `atoll` with these environment variables and kTestVariable only, as `user` (setpriv) if
  /// it is not 0.
  Ran atoll(const Words& variables, const Words& arguments, uid_t user = 0) const {
    Words words;
    if (user != 0) {
      const std::string id = std::to_string(user);
      words = {"--reuid=" + id, "--regid=" + id, "--clear-groups", "/usr/bin/env"};
    }
    words.push_back("-i");
    words.push_back(kTestVariable);
    words.insert(words.end(), variables.begin(), variables.end());
    words.push_back(program());
    words.insert(words.end(), arguments.begin(), arguments.end());
    return runner_.run(user != 0 ? "/usr/bin/setpriv" : "/usr/bin/env", words);
  }
  std::string unique(const std::string& name) const {
    return name + "-" + std::to_string(getpid());
  }
  /// Makes a folder of another user. Returns an empty text if this test cannot act as that user.
  std::string folder_of(uid_t user) const {
    if (geteuid() != 0) return "";
    const std::string path = folder_.path() + "/user" + std::to_string(user);
    std::filesystem::create_directories(path);
    const std::string id = std::to_string(user);
    const Ran ran = runner_.run("/usr/bin/setpriv", {"--reuid=" + id, "--regid=" + id,
                                                     "--clear-groups", program(), "--version"});
    if (ran.code != 0 || chown(path.c_str(), user, user) != 0) return "";
    return path;
  }
  void expect_gone(const std::string& name) const {
    EXPECT_TRUE(eventually([&] { return processes_of(name).empty(); }));
  }
  void lose_run_folder(const std::string& file, const std::string& name, bool is_durable);

  TestFolder folder_;
  CliRunner runner_{folder_};
};

TEST_F(FindClusterTest, TheSameConfigFileFindsTheSameClusterInEveryEnvironment) {
  const std::string name = unique("env");
  const std::string file = config(name, false);
  const std::string home = "HOME=" + folder_.path() + "/home";
  const std::string runtime = "XDG_RUNTIME_DIR=" + folder_.path();
  // The environments of a login, a cron job, a system unit, and another login.
  const std::vector<Words> environments = {
      {home, runtime},
      {home},
      {},
      {"RUNTIME_DIRECTORY=/run/x", "XDG_RUNTIME_DIR=" + folder_.path() + "/2"}};
  for (const Words& started_in : {environments[0], environments[2]}) {
    const Ran up = atoll(started_in, {"up", "-c", file});
    ASSERT_EQ(up.code, 0) << up.error;
    for (const Words& asked_in : environments) {
      const Ran status = atoll(asked_in, {"status", "--json", "-c", file});
      EXPECT_EQ(status.code, 0) << status.error;
      EXPECT_EQ(Json::parse(status.out, nullptr, false).value("name", ""), name) << status.out;
      const Ran again = atoll(asked_in, {"up", "-c", file});
      EXPECT_EQ(again.code, 4) << again.error;
    }
    const Ran down = atoll(environments[1], {"down", "-c", file});
    EXPECT_EQ(down.code, 0) << down.error;
    expect_gone(name);
    EXPECT_EQ(atoll(environments[0], {"status", "-c", file}).code, 3);
  }
  EXPECT_FALSE(std::filesystem::exists("/tmp/atoll-" + std::to_string(geteuid()) + "/" + name));
}

TEST_F(FindClusterTest, TheNameOfAnOptionIsNotReplacedByTheEnvironment) {
  const std::string name = unique("named");
  const std::string file = config(name, false);
  const Words runtime = {"XDG_RUNTIME_DIR=" + folder_.path()};
  ASSERT_EQ(atoll(runtime, {"up", "-c", file}).code, 0);
  const std::string run_dir = folder_.path() + "/atoll/" + name;
  for (const std::string& variable :
       {"ATOLL_CLUSTER_NAME=" + name, "ATOLL_CLUSTER_RUN_DIR=" + run_dir}) {
    for (const char* verb : {"down", "status"}) {
      const Ran ran = atoll({runtime[0], variable}, {verb, "--cluster", "other"});
      EXPECT_NE(ran.code, 0) << variable << ": " << verb << ": " << ran.out;
      EXPECT_EQ(ran.out.find(name), std::string::npos) << ran.out;
    }
    EXPECT_EQ(atoll({runtime[0], variable}, {"status"}).code, 0);
  }
  EXPECT_EQ(atoll(runtime, {"down", "--cluster", name}).code, 0);
}

TEST_F(FindClusterTest, RootFindsTheClusterOfAnotherUserAndAThirdUserIsToldWhy) {
  const std::string own = folder_of(kOther);
  if (own.empty()) GTEST_SKIP() << "this test cannot run programs as another user here";
  const std::string name = unique("sudo");
  const std::string file = config(name, false);
  std::string text = read_text(file);
  for (const char* kind : {".log", ".data"}) {
    const std::string from = folder_.path() + "/" + name + kind;
    text.replace(text.find(from), from.size(), own + "/" + name + kind);
  }
  std::ofstream(file, std::ios::trunc) << text;
  ASSERT_EQ(chown(file.c_str(), kOther, kOther), 0);
  const Ran up = atoll({}, {"up", "-c", file}, kOther);
  ASSERT_EQ(up.code, 0) << up.error << up.out;
  const Ran status = atoll({"HOME=/root"}, {"status", "--json", "-c", file});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(Json::parse(status.out, nullptr, false).value("name", ""), name) << status.out;
  // The config of a third user names the run folder of the cluster.
  const std::string run_dir = "/tmp/atoll-" + std::to_string(kOther) + "/" + name;
  ASSERT_TRUE(std::filesystem::exists(run_dir));
  const std::string third = folder_.path() + "/third.toml";
  std::ofstream(third) << "[cluster]\nname = \"" << name << "\"\nrun_dir = \"" << run_dir
                       << "\"\nlog_dir = \"/l\"\ndata_dir = \"/d\"\n";
  const Ran refused = atoll({}, {"status", "-c", third}, kThird);
  EXPECT_EQ(refused.code, 1) << refused.error;
  EXPECT_NE(refused.error.find("Permission denied"), std::string::npos) << refused.error;
  EXPECT_NE(refused.error.find("belongs to uid 54321"), std::string::npos) << refused.error;
  EXPECT_NE(refused.error.find("this is uid 54322"), std::string::npos) << refused.error;
  const Ran down = atoll({"HOME=/root"}, {"down", "-c", file});
  EXPECT_EQ(down.code, 0) << down.error;
  expect_gone(name);
  std::filesystem::remove_all("/tmp/atoll-" + std::to_string(kOther));
}

void FindClusterTest::lose_run_folder(const std::string& file, const std::string& name,
                                      bool is_durable) {
  SCOPED_TRACE(is_durable ? "durable" : "off");
  const std::string run_dir = folder_.path() + "/atoll/" + name;
  const Ran up = runner_.atoll({"up", "-c", file});
  ASSERT_EQ(up.code, 0) << up.error;
  ASSERT_TRUE(std::filesystem::exists(run_dir + "/lock"));
  std::filesystem::remove_all(run_dir);
  const std::string log = folder_.path() + "/" + name + ".log/launcher.log";
  EXPECT_TRUE(eventually([&] { return read_text(log).contains("the run folder was deleted"); }));
  const Ran status = runner_.atoll({"status", "-c", file});
  EXPECT_EQ(status.code, 5) << status.error;
  EXPECT_NE(status.error.find("its run folder " + run_dir + " was deleted"), std::string::npos)
      << status.error;
  EXPECT_EQ(runner_.atoll({"up", "-c", file}).code, 4);
  EXPECT_FALSE(processes_of(name).empty());
  const Ran down = runner_.atoll({"down", "-c", file});
  EXPECT_EQ(down.code, 0) << down.error;
  EXPECT_NE(down.out.find("was deleted"), std::string::npos) << down.out;
  EXPECT_NE(down.out.find("has stopped"), std::string::npos) << down.out;
  expect_gone(name);
}

TEST_F(FindClusterTest, ARunFolderThatWasDeletedIsSaidAndDownStillWorks) {
  for (const bool is_durable : {true, false}) {
    const std::string name = unique(is_durable ? "lost-d" : "lost-o");
    lose_run_folder(config(name, is_durable), name, is_durable);
  }
}

TEST_F(FindClusterTest, TheLockOfTheDataLeadsToALauncherWithoutANote) {
  const std::string name = unique("lock");
  Config config = folder_.config(name, 1);
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  // Sets another run folder, as another environment would.
  Config elsewhere = config;
  elsewhere.cluster.run_dir += "2";
  elsewhere.control.endpoint = "ipc://" + elsewhere.cluster.run_dir + "/control.sock";
  const std::string file = folder_.path() + "/elsewhere.toml";
  std::ofstream(file) << to_toml(elsewhere);
  const Ran status = runner_.atoll({"status", "--json", "-c", file});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(Json::parse(status.out, nullptr, false).value("state", ""), "running") << status.out;
  std::filesystem::remove_all(config.cluster.run_dir);
  const Ran lost = runner_.atoll({"status", "-c", file});
  EXPECT_EQ(lost.code, 5) << lost.error;
  EXPECT_NE(lost.error.find(config.cluster.run_dir + " was deleted"), std::string::npos)
      << lost.error;
  const Ran down = runner_.atoll({"down", "-c", file});
  EXPECT_EQ(down.code, 0) << down.error;
  EXPECT_EQ(launcher.wait(), 0);
  expect_gone(name);
}

TEST_F(FindClusterTest, UpLeavesTheFilesAndTheFolderOfItsCaller) {
  const std::string name = unique("left");
  const std::string file = config(name, false);
  const std::string lock = folder_.path() + "/caller.lock";
  const std::string place = folder_.path() + "/place";
  std::filesystem::create_directories(place);
  // The caller gives a relative config file. It has a descriptor with a high number open, besides
  // that of flock.
  const std::string line = "cd " + place + " && exec 77>" + lock + ".2 && flock " + lock + " " +
                           program() + " up -c ../" + name + ".toml";
  const Ran up = runner_.run("/bin/bash", {"-c", line});
  ASSERT_EQ(up.code, 0) << up.error;
  for (const std::string& path : {lock, lock + ".2"}) {
    EXPECT_EQ(runner_.run("/usr/bin/flock", {"-n", path, "true"}).code, 0) << path;
  }
  std::vector<pid_t> all = processes_of(name);
  EXPECT_EQ(all.size(), 2u);
  const auto note = noted_cluster(canonical_config_file(file), "");
  ASSERT_TRUE(note);
  all.push_back(note->launcher.pid);
  for (const pid_t pid : all) {
    const std::string process = "/proc/" + std::to_string(pid);
    EXPECT_EQ(std::filesystem::read_symlink(process + "/cwd"), "/");
    for (const auto& entry : std::filesystem::directory_iterator(process + "/fd")) {
      std::error_code ignored;
      const std::string target = std::filesystem::read_symlink(entry.path(), ignored).string();
      EXPECT_FALSE(target.contains("caller.lock")) << pid << " " << entry.path() << " " << target;
    }
  }
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 0);
}

TEST_F(FindClusterTest, UpStartsAClusterWhenTheStandardStreamsAreClosed) {
  const std::string name = unique("closed");
  const std::string file = config(name, true);
  const std::string line = "exec " + program() + " up -c " + file + " <&- >&- 2>&-";
  EXPECT_EQ(runner_.run("/bin/bash", {"-c", line}).code, 0);
  const Ran status = runner_.atoll({"status", "-c", file});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(runner_.atoll({"down", "-c", file}).code, 0);
  expect_gone(name);
}

}  // namespace
}  // namespace atolldb::test
