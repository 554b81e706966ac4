// Clusters of real processes with durability.scheme = "silor": after the cluster was killed,
// everything promised to clients is there again, with and without checkpoints.
#include <gtest/gtest.h>

#include <random>

#include "engine/checkpoint/checkpoint_file.h"
#include "engine/log/log_files.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    config_.durability.scheme = DurabilityScheme::silor;
    config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
    config_.gleaner.disk_reserve = 1;
    std::filesystem::create_directories(ledgers());
  }

  std::string ledgers() const { return folder_.path() + "/ledgers"; }
  cli::RunningCluster cluster() const { return cli::RunningCluster(config_); }
  Json checkpoints() const {
    const auto status =
        cluster().coordinator(ControlOperation::status, {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? status->value("checkpoints", Json::object()) : Json::object();
  }
  uint64_t newest() const { return checkpoints().value("newest", uint64_t{0}); }
  uint64_t take() const {
    const auto taken =
        cluster().coordinator(ControlOperation::checkpoint_take, {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(taken) << taken.error().message;
    return taken ? taken->value("id", uint64_t{0}) : 0;
  }
  /// Kills the launcher, and so all other processes.
  void kill_all(LauncherProcess& launcher) const {
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }
  static void stop(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
  /// Runs clients until `is_enough` returns true, then kills everything. Adds what the clients
  /// know to `ledger_`.
  template <typename IsEnough>
  void live_and_crash(LauncherProcess& launcher, IsEnough is_enough) {
    const std::string folder = ledgers() + "/" + std::to_string(lives_++);
    std::filesystem::create_directories(folder);
    LedgerClients clients(config_, folder, random_());
    EXPECT_TRUE(eventually([&] { return is_enough(clients); }));
    kill_all(launcher);
    clients.join();
    ledger_ = clients.ledger();
  }
  void expect_all_after_start(LauncherProcess& launcher) const {
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    expect_promises_kept(config_, ledger_);
  }
  /// Returns the numbers of the log files of all nodes.
  std::set<uint32_t> log_ordinals() const {
    PosixFileSystem files;
    std::set<uint32_t> ordinals;
    const auto found = log_files_in(files, {config_.cluster.data_dir});
    EXPECT_TRUE(found) << found.error().message;
    for (const LogFilePlace& place : *found) ordinals.insert(place.name.ordinal);
    return ordinals;
  }

  TestFolder folder_;
  Config config_ = folder_.config("checkpoints");
  std::mt19937_64 random_{seed()};
  uint32_t lives_ = 0;
  Ledger ledger_;
};

TEST_F(CheckpointTest, WithoutCheckpointsTheLogAloneRestoresEverything) {
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    ASSERT_TRUE(create_ledger(config_));
    live_and_crash(launcher,
                   [](LedgerClients& clients) { return clients.has_written(1, 100'000); });
  }
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE("start " + std::to_string(start));
    LauncherProcess launcher(config_);
    expect_all_after_start(launcher);
    EXPECT_EQ(newest(), 0u);
    EXPECT_GT(checkpoints().at("replay").at("records"), 0);
    stop(launcher);
  }
}

TEST_F(CheckpointTest, ACheckpointAndTheLogAfterItRestoreEverythingAndOldLogsAreDeleted) {
  config_.durability.checkpoint_interval = std::chrono::milliseconds(50);
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    ASSERT_TRUE(create_ledger(config_));
    live_and_crash(launcher,
                   [&](LedgerClients&) { return newest() >= 3 && !log_ordinals().contains(0); });
  }
  LauncherProcess launcher(config_);
  expect_all_after_start(launcher);
  EXPECT_GE(newest(), 3u);
  stop(launcher);
}

TEST_F(CheckpointTest, NothingPromisedIsLostHoweverOftenItIsKilled) {
  config_.durability.checkpoint_interval = std::chrono::milliseconds(20);
  config_.durability.checkpoint_threads = 2;
  config_.durability.checkpoint_files = 3;
  const uint64_t count = rounds(4, 60);
  for (uint64_t round = 0; round < count; ++round) {
    const uint64_t bytes = 20'000 + random_() % 200'000;
    SCOPED_TRACE(fmt::format("round {}, killed after {} bytes of ledger", round, bytes));
    config_.durability.replay_order =
        round % 2 == 0 ? ReplayOrder::newest_first : ReplayOrder::oldest_first;
    LauncherProcess launcher(config_);
    if (round == 0) {
      ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
      ASSERT_TRUE(create_ledger(config_));
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_all_after_start(launcher));
      // A ledger describes one life, so the storage begins each life empty.
      ASSERT_TRUE(cluster().drop_storage(kLedgerStorage));
      ASSERT_TRUE(create_ledger(config_));
    }
    live_and_crash(launcher, [&](LedgerClients& clients) { return clients.has_written(1, bytes); });
  }
  LauncherProcess launcher(config_);
  expect_all_after_start(launcher);
  EXPECT_GT(newest(), 0u);
  stop(launcher);
}

TEST_F(CheckpointTest, StartsThatAreKilledDuringTheReplayLoseNothing) {
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    ASSERT_TRUE(create_ledger(config_));
    live_and_crash(launcher, [&](LedgerClients& clients) {
      const bool is_enough = clients.has_written(1, 100'000);
      if (is_enough) {
        EXPECT_EQ(take(), 1u);
      }
      return is_enough;
    });
  }
  const uint64_t count = rounds(4, 60);
  for (uint64_t round = 0; round < count; ++round) {
    const std::chrono::microseconds delay(random_() % 400'000);
    SCOPED_TRACE(fmt::format("start {} killed after {} us", round, delay.count()));
    LauncherProcess launcher(config_);
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill_all(launcher);
  }
  LauncherProcess launcher(config_);
  expect_all_after_start(launcher);
  EXPECT_EQ(newest(), 1u);
  stop(launcher);
}

TEST_F(CheckpointTest, ADataDirectoryKeepsItsScheme) {
  {
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running") << last_failure(config_);
    ASSERT_TRUE(create_ledger(config_));
    stop(launcher);
  }
  config_.durability.scheme = DurabilityScheme::gleaned;
  {
    LauncherProcess launcher(config_);
    const std::string refused = launcher.next_line();
    EXPECT_NE(refused.find("silor"), std::string::npos) << refused;
    EXPECT_NE(refused.find("gleaned"), std::string::npos) << refused;
    EXPECT_NE(launcher.wait(), 0);
  }
  config_.durability.scheme = DurabilityScheme::silor;
  LauncherProcess launcher(config_);
  EXPECT_EQ(launcher.next_line(), "running") << last_failure(config_);
  stop(launcher);
}

}  // namespace
}  // namespace atolldb::test
