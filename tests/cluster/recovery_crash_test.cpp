// Recovery with real processes: after the cluster was killed, everything promised to clients is
// there again, even if its starts are killed repeatedly.
#include <gtest/gtest.h>

#include <random>

#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

class RecoveryCrashTest : public testing::TestWithParam<DurabilityScheme> {
 protected:
  RecoveryCrashTest() {
    config_.durability.scheme = GetParam();
    config_.durability.checkpoint_interval = std::chrono::milliseconds(50);
  }

  /// Kills the launcher, and so all other processes.
  void kill_all(LauncherProcess& launcher) {
    kill(launcher.pid(), SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }

  /// Runs clients until they have some promises, then kills everything.
  Ledger live_and_crash() {
    LauncherProcess launcher(config_);
    EXPECT_EQ(launcher.next_line(), "running");
    const auto created = create_ledger(config_);
    EXPECT_TRUE(created) << created.error().message;
    const std::string ledgers = folder_.path() + "/ledgers";
    std::filesystem::create_directories(ledgers);
    LedgerClients clients(config_, ledgers, random_());
    EXPECT_TRUE(eventually([&] { return clients.has_written(1, 100'000); }));
    kill_all(launcher);
    clients.join();
    return clients.ledger();
  }

  TestFolder folder_;
  Config config_ = folder_.config("recovers");
  std::mt19937_64 random_{seed()};
};

INSTANTIATE_TEST_SUITE_P(Schemes, RecoveryCrashTest,
                         testing::Values(DurabilityScheme::gleaned, DurabilityScheme::silor),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

TEST_P(RecoveryCrashTest, WhatWasPromisedIsThereAgainHoweverOftenStartsAreKilled) {
  const Ledger ledger = live_and_crash();
  const uint64_t count = rounds(5, 100);
  for (uint64_t round = 0; round < count; ++round) {
    const std::chrono::microseconds delay(random_() % 400'000);
    SCOPED_TRACE(fmt::format("start {} killed after {} us", round, delay.count()));
    LauncherProcess launcher(config_);
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill_all(launcher);
  }
  for (int start = 0; start < 2; ++start) {
    SCOPED_TRACE("start " + std::to_string(start));
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    expect_promises_kept(config_, ledger);
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    ASSERT_TRUE(status) << status.error().message;
    const bool is_silor = GetParam() == DurabilityScheme::silor;
    EXPECT_GE(status->at(is_silor ? "checkpoints" : "snapshots").at("newest"), 1);
    kill(launcher.pid(), SIGTERM);
    EXPECT_EQ(launcher.wait(), 0);
  }
}

}  // namespace
}  // namespace atolldb::test
