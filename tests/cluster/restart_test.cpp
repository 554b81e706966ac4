// cluster.restart = "recover" with real processes. When any process is killed, the launcher
// restarts the cluster with everything acknowledged. It also knows when to stop restarting.
#include <gtest/gtest.h>

#include <random>

#include "engine/log/savepoint.h"
#include "ops/launcher/run_folder.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"
#include "tests/cluster/metrics_http.h"

namespace atolldb::test {
namespace {

using Json = nlohmann::json;

/// Limits that no test reaches.
constexpr RestartLimits kManyRestarts{.most = 1'000, .first_wait = {}, .longest_wait = {}};

class RestartTest : public testing::Test {
 protected:
  RestartTest() {
    config_.cluster.restart = RestartPolicy::recover;
    file_ = folder_.path() + "/restart.toml";
    std::ofstream(file_) << to_toml(config_);
  }

  Json note() const { return Json::parse(read_text(restarts_path(config_)), nullptr, false); }
  /// Waits until the cluster runs after restart number `count`.
  bool has_restarted(uint32_t count) const {
    return eventually([&] {
      const Json restarts = note();
      return restarts.is_object() && restarts.value("count", 0u) == count &&
             !restarts.value("under_way", true);
    });
  }
  /// Waits until the cluster has failed, and the launcher waits before restart number `count`.
  bool waits_for(uint32_t count) const {
    return eventually([&] {
      const Json restarts = note();
      return restarts.is_object() && restarts.value("count", 0u) == count &&
             restarts.value("under_way", false);
    });
  }
  /// Kills one process of the running cluster. Returns its pid.
  pid_t kill_one(const std::string& role) const {
    const auto found = processes_of(config_.cluster.name, role);
    if (found.size() != 1) {
      ADD_FAILURE() << found.size() << " processes are " << role;
      return 0;
    }
    kill(found.front(), SIGKILL);
    return found.front();
  }
  TestFolder folder_;
  Config config_ = folder_.config("restarts");
  std::string file_;
  CliRunner runner_{folder_};
  std::mt19937_64 random_{seed()};
};

/// The tests whose restarts recover data. The others depend on no scheme.
class RestartWithData : public RestartTest, public testing::WithParamInterface<DurabilityScheme> {
 protected:
  RestartWithData() {
    config_.durability.scheme = GetParam();
    // Shorter than the default, so that restarts use checkpoints, too.
    config_.durability.checkpoint_interval = std::chrono::milliseconds(100);
    std::ofstream(file_) << to_toml(config_);
  }
};

INSTANTIATE_TEST_SUITE_P(Schemes, RestartWithData,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(RestartWithData, KilledUnderLoadTheClusterRecoversAllThatWasAcknowledged) {
  LauncherProcess launcher(config_, false, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config_));
  const std::string ledgers = folder_.path() + "/ledgers";
  std::filesystem::create_directories(ledgers);
  LedgerClients clients(config_, ledgers, random_(), true);
  const std::vector<std::string> roles = {"node0", "node1", "coordinator"};
  const auto count = static_cast<uint32_t>(rounds(4, 60));
  for (uint32_t round = 1; round <= count; ++round) {
    const std::string role = roles[random_() % roles.size()];
    SCOPED_TRACE("round " + std::to_string(round) + ": " + role);
    // Waits until both clients write to the current incarnation.
    for (const uint32_t node : {0u, 1u}) {
      const auto lines = [&] {
        std::error_code missing;
        const auto bytes = std::filesystem::file_size(clients.file(node), missing);
        return missing ? 0 : bytes;
      };
      const auto before = lines();
      ASSERT_TRUE(eventually([&] { return lines() > before + 20'000; }));
    }
    const auto old = processes_of(config_.cluster.name);
    const pid_t victim = kill_one(role);
    ASSERT_TRUE(has_restarted(round)) << note().dump();
    const std::string reason = note().value("last_reason", "");
    EXPECT_NE(reason.find(role + " (pid " + std::to_string(victim) + ")"), std::string::npos)
        << reason;
    for (const pid_t pid : old) {
      const auto now = processes_of(config_.cluster.name);
      EXPECT_EQ(std::ranges::count(now, pid), 0) << pid << " is of the incarnation before";
    }
  }
  clients.stop();
  const Ledger ledger = clients.ledger();
  expect_promises_kept(config_, ledger);
  std::set<uint64_t> incarnations;
  for (const auto& [token, transaction] : ledger) {
    if (!transaction.outcome || !transaction.outcome->is_promised()) continue;
    incarnations.insert(transaction.outcome->incarnation);
  }
  EXPECT_GE(incarnations.size(), count);
  const Ran status = runner_.atoll({"status", "--json", "-c", file_});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(Json::parse(status.out).at("restarts").at("count"), count);
  const std::string metrics = Json::parse(status.out).at("processes").at(0).at("metrics");
  const std::string scraped = http_get(port_of(metrics), "/metrics");
  EXPECT_TRUE(scraped.contains("\natoll_restarts_total " + std::to_string(count) + "\n"))
      << scraped;
  const Ran text = runner_.atoll({"status", "-c", file_});
  EXPECT_NE(text.out.find("restarts       " + std::to_string(count)), std::string::npos)
      << text.out;
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
}

TEST_P(RestartWithData, AHungProcessIsReplacedAndDataThatWereDiscardedOnceAreNotAgain) {
  config_.cluster.hang_limit = std::chrono::seconds(2);
  LauncherProcess launcher(config_, true, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  ASSERT_TRUE(create_ledger(config_));
  const auto hung = processes_of(config_.cluster.name, "node0");
  ASSERT_EQ(hung.size(), 1u);
  kill(hung.front(), SIGSTOP);
  ASSERT_TRUE(has_restarted(1)) << note().dump();
  const std::string reason = note().value("last_reason", "");
  EXPECT_NE(reason.find("node0 (pid " + std::to_string(hung.front()) + ") hung"), std::string::npos)
      << reason;
  EXPECT_FALSE(find_process(hung.front()));
  const auto storage = cli::RunningCluster(config_).coordinator(
      ControlOperation::storage_describe, Json{{"name", std::string(kLedgerStorage)}},
      Cluster::kDefaultTimeout);
  EXPECT_TRUE(storage) << storage.error().message;
  kill(launcher.pid(), SIGTERM);
  EXPECT_EQ(launcher.wait(), 0);
}

TEST_F(RestartTest, ACrashLoopEndsAndSaysSo) {
  LauncherProcess launcher(config_, false, {.most = 2, .first_wait = {}, .longest_wait = {}});
  ASSERT_EQ(launcher.next_line(), "running");
  for (const uint32_t round : {1u, 2u}) {
    kill_one("node1");
    ASSERT_TRUE(has_restarted(round)) << note().dump();
  }
  kill_one("node1");
  const int status = launcher.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
  const std::string message = last_failure(config_);
  EXPECT_NE(message.find("given up after 2 restarts in succession"), std::string::npos) << message;
  EXPECT_TRUE(processes_of(config_.cluster.name).empty());
  EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
}

TEST_P(RestartWithData, DamagedDataIsNotStartedAgainAndAgain) {
  LauncherProcess launcher(config_, false, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  std::ofstream(savepoint_path(config_.cluster.data_dir), std::ios::in | std::ios::binary)
      << std::string(2 * kSavepointSlotBytes, 'x');
  kill_one("node0");
  const int status = launcher.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::corruption));
  const std::string message = last_failure(config_);
  EXPECT_NE(message.find("not restarted"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
}

TEST_F(RestartTest, DownEndsAClusterThatWaitsForItsRestart) {
  const RestartLimits slow{.first_wait = std::chrono::hours(1),
                           .longest_wait = std::chrono::hours(1)};
  LauncherProcess launcher(config_, false, slow);
  ASSERT_EQ(launcher.next_line(), "running");
  kill_one("coordinator");
  ASSERT_TRUE(has_restarted(1)) << note().dump();
  kill_one("coordinator");
  ASSERT_TRUE(waits_for(2)) << note().dump();
  EXPECT_TRUE(processes_of(config_.cluster.name).empty());
  const Ran status = runner_.atoll({"status", "--json", "-c", file_});
  EXPECT_EQ(status.code, 5);
  EXPECT_EQ(Json::parse(status.out).at("state"), "restarting");
  EXPECT_NE(status.error.find("restart 2 of at most 5 in succession"), std::string::npos)
      << status.error;
  EXPECT_EQ(runner_.atoll({"up", "-c", file_}).code, 4);
  const Ran down = runner_.atoll({"down", "-c", file_});
  EXPECT_EQ(down.code, 0) << down.error;
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_EQ(last_failure(config_), "");
  EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
}

TEST_F(RestartTest, ARunFolderThatWasDeletedIsMadeAgain) {
  LauncherProcess launcher(config_, false, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  std::filesystem::remove_all(config_.cluster.run_dir);
  kill_one("node0");
  ASSERT_TRUE(has_restarted(1)) << note().dump();
  const Ran status = runner_.atoll({"status", "-c", file_});
  EXPECT_EQ(status.code, 0) << status.error;
  EXPECT_EQ(runner_.atoll({"down", "-c", file_}).code, 0);
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_FALSE(std::filesystem::exists(config_.cluster.run_dir));
}

TEST_F(RestartTest, ARunFolderThatAnotherClusterHasByNowIsLeftToIt) {
  LauncherProcess launcher(config_, false, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  std::filesystem::remove_all(config_.cluster.run_dir);
  const auto other = RunFolder::acquire(config_);
  ASSERT_TRUE(other) << other.error().message;
  ASSERT_TRUE(RunFolder::write_file(endpoints_path(config_), "{}"));
  kill_one("node0");
  const int status = launcher.wait();
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ExitCode::already_running));
  EXPECT_EQ(read_text(endpoints_path(config_)), "{}");
  EXPECT_FALSE(std::filesystem::exists(restarts_path(config_)));
  EXPECT_FALSE(std::filesystem::exists(running_config_path(config_)));
}

TEST_F(RestartTest, AnOrderlyStopIsNotARestart) {
  LauncherProcess launcher(config_, false, kManyRestarts);
  ASSERT_EQ(launcher.next_line(), "running");
  EXPECT_EQ(runner_.atoll({"down", "-c", file_}).code, 0);
  EXPECT_EQ(launcher.wait(), 0);
  EXPECT_TRUE(processes_of(config_.cluster.name).empty());
}

}  // namespace
}  // namespace atolldb::test
