// Fail-stop with real processes: any process is killed or stopped at any instant. Nothing is left,
// and the message names the process.
#include <random>

#include "ops/cluster/cluster.h"
#include "shared/process/run_paths.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/cluster_folder.h"
#include "tests/cluster/launcher_process.h"

namespace atolldb::test {
namespace {

using Clock = std::chrono::steady_clock;

void expect_nothing_left(const Config& config) {
  EXPECT_TRUE(eventually([&] { return processes_of(config.cluster.name).empty(); }));
  EXPECT_EQ(open_segments(), 0u);
}

/// Runs a complete start and stop. Returns its duration.
std::chrono::microseconds clean_run(const Config& config) {
  const auto begin = Clock::now();
  LauncherProcess launcher(config);
  EXPECT_EQ(launcher.next_line(), "running");
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
  return std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - begin);
}

/// Waits for a process of this role. Returns 0 if the cluster has ended before.
pid_t find_victim(const Config& config, LauncherProcess& launcher, const std::string& role) {
  if (role == "launcher") return launcher.pid();
  while (!launcher.has_ended()) {
    const auto found = processes_of(config.cluster.name, role);
    if (!found.empty()) return found.front();
  }
  return 0;
}

TEST(KillTest, WhicheverProcessIsKilledAtAnyInstantNothingIsLeftAndTheMessageNamesIt) {
  std::mt19937_64 random(seed());
  TestFolder folder;
  const Config config = folder.config("kill", 2, 1);
  const auto whole_run = clean_run(config);
  const auto count = static_cast<int>(rounds(10, 100));
  const std::vector<std::string> roles = {"node0", "node1", "coordinator", "launcher"};
  int struck = 0;
  for (int round = 0; round < count; ++round) {
    const std::string role = roles[random() % roles.size()];
    const std::chrono::microseconds delay(random() % static_cast<uint64_t>(whole_run.count()));
    SCOPED_TRACE("round " + std::to_string(round) + ": " + role + " after " +
                 std::to_string(delay.count()) + " us");
    LauncherProcess launcher(config);
    // Stops the cluster as soon as it runs, so that the kill may happen during the stop.
    std::thread stopper([&] {
      if (launcher.next_line() == "running") kill(launcher.pid(), SIGTERM);
    });
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    const auto now = processes_of(config.cluster.name, role);
    pid_t victim = role == "launcher" ? launcher.pid() : now.empty() ? 0 : now.front();
    if (victim != 0) kill(victim, SIGKILL);
    stopper.join();
    const int status = launcher.wait();
    if (role != "launcher" && victim != 0 && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
      ++struck;
      const std::string message = last_failure(config);
      EXPECT_NE(message.find(role + " (pid " + std::to_string(victim) + ")"), std::string::npos)
          << message;
      EXPECT_NE(message.find("SIGKILL"), std::string::npos) << message;
      EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
    }
    if (role == "launcher") ++struck;
    expect_nothing_left(config);
  }
  std::printf("%d of %d kills struck a running cluster\n", struck, count);
  EXPECT_GT(struck, 0);
  clean_run(config);  // removes everything that the last round left
}

/// Kills the command line tool itself: `up`, `bench` and `down`, from their exec on. A killed `up`
/// may leave a running cluster, and a killed `down` a stopping one. `down` ends both.
TEST(KillTest, AKilledCommandLeavesNothingThatDownDoesNotEnd) {
  std::mt19937_64 random(seed());
  TestFolder folder;
  const CliRunner runner(folder);
  const std::string config = runner.config("cli-kill");
  const std::string tool = std::string(ATOLL_BIN_DIR) + "/atoll";
  const std::string out = folder.path() + "/killed.out";
  const std::string error = folder.path() + "/killed.err";
  const std::vector<std::vector<std::string>> commands = {
      {"up", "-c", config},
      {"bench", "tpcc", "-c", config, "--seconds", "1", "--warmup", "0"},
      {"down", "-c", config}};
  const auto count = rounds(10, 100);
  for (uint64_t round = 0; round < count; ++round) {
    const std::vector<std::string>& command = commands[round % commands.size()];
    const std::chrono::microseconds delay(random() % 300'000);
    SCOPED_TRACE("round " + std::to_string(round) + ": " + command[0] + " killed after " +
                 std::to_string(delay.count()) + " us");
    if (command[0] == "down") {
      const Ran up = runner.atoll({"up", "-c", config});
      ASSERT_EQ(up.code, 0) << up.error;
    }
    const pid_t pid = runner.start(tool, command, out, error);
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill(pid, SIGKILL);
    reap(pid);
    // Repeats the command, because a launcher that is starting does not answer yet. Soon it either
    // runs or has ended.
    EXPECT_TRUE(eventually([&] {
      runner.atoll({"down", "--now", "-c", config});
      return processes_of("cli-kill").empty();
    })) << read_text(error);
  }
  // The next start-up removes everything that the last round left.
  const CliCluster next(runner, config);
  EXPECT_EQ(next.up().code, 0) << next.up().error;
}

TEST(KillTest, EveryRoleKilledWhileRunningIsNamedWithItsSignal) {
  TestFolder folder;
  const Config config = folder.config("named");
  for (const std::string role : {"node0", "node1", "coordinator"}) {
    LauncherProcess launcher(config);
    ASSERT_EQ(launcher.next_line(), "running");
    const pid_t victim = find_victim(config, launcher, role);
    kill(victim, SIGKILL);
    const std::string message = launcher.next_line();
    EXPECT_NE(message.find(role + " (pid " + std::to_string(victim) + ") was killed by SIGKILL"),
              std::string::npos)
        << message;
    EXPECT_EQ(WEXITSTATUS(launcher.wait()), 1);
    EXPECT_EQ(last_failure(config), message);
    EXPECT_FALSE(std::filesystem::exists(config.cluster.run_dir));
    expect_nothing_left(config);
  }
}

TEST(KillTest, ChildrenOfAKilledLauncherDieAndTheNextStartCleansUp) {
  TestFolder folder;
  const Config config = folder.config("orphans");
  {
    LauncherProcess launcher(config);
    ASSERT_EQ(launcher.next_line(), "running");
    EXPECT_EQ(processes_of("orphans").size(), 3u);
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
  }
  EXPECT_TRUE(std::filesystem::exists(endpoints_path(config)));
  expect_nothing_left(config);
  clean_run(config);
  EXPECT_NE(read_text(log_path(config, "launcher")).find("removed the files of a dead cluster"),
            std::string::npos);
}

TEST(KillTest, AStoppedNodeIsReportedAsHung) {
  TestFolder folder;
  Config config = folder.config("hung");
  config.cluster.heartbeat = std::chrono::milliseconds(50);
  config.cluster.hang_limit = std::chrono::milliseconds(1000);
  LauncherProcess launcher(config);
  ASSERT_EQ(launcher.next_line(), "running");
  const pid_t victim = find_victim(config, launcher, "node1");
  kill(victim, SIGSTOP);
  const std::string message = launcher.next_line();
  EXPECT_NE(message.find("node1 (pid " + std::to_string(victim) + ") hung"), std::string::npos)
      << message;
  EXPECT_EQ(WEXITSTATUS(launcher.wait()), 1);
  expect_nothing_left(config);
}

TEST(KillTest, AnEmbeddingProgramIsToldWhoDied) {
  TestFolder folder;
  const Config config = folder.config("embedded");
  auto cluster = Cluster::launch(config, LaunchMode::process, ATOLL_BIN_DIR);
  ASSERT_TRUE(cluster) << cluster.error().message;
  kill(processes_of("embedded", "node1").at(0), SIGKILL);
  const auto answer = (*cluster)->call(1, ControlOperation::describe, Json::object());
  ASSERT_FALSE(answer);
  const auto ended = (*cluster)->shutdown();
  ASSERT_FALSE(ended);
  EXPECT_NE(ended.error().message.find("node1"), std::string::npos) << ended.error().message;
  cluster->reset();
  expect_nothing_left(config);
}

}  // namespace
}  // namespace atolldb::test
