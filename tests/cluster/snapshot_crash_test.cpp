// Snapshots of a running cluster, taken as often as possible, and processes killed at any time:
// whatever was promised is there after the next start, which begins from snapshot and log.
#include <gtest/gtest.h>

#include <random>

#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {
namespace {

class SnapshotCrashTest : public testing::Test {
 protected:
  SnapshotCrashTest() {
    config_.gleaner.interval = std::chrono::milliseconds(100);
    std::filesystem::create_directories(ledgers_);
  }

  Json snapshots() const {
    const auto status =
        cli::RunningCluster(config_).coordinator("status", {}, Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? status->at("snapshots") : Json{{"newest", 0}};
  }

  void expect_promises_kept() const {
    for (const uint32_t node : {0u, 1u}) {
      auto session = SessionClient::connect(config_.cluster.run_dir, node);
      ASSERT_TRUE(session) << session.error().message;
      const auto state = read_ledger_state(**session);
      ASSERT_TRUE(state) << state.error().message;
      for (const LedgerViolation& one : check_ledger(ledger_, *state)) ADD_FAILURE() << one.text;
    }
  }

  /// The launcher with all, a node, or the coordinator.
  void kill_something(LauncherProcess& launcher) {
    std::vector<pid_t> processes = processes_of(config_.cluster.name);
    processes.push_back(launcher.pid());
    kill(processes[random_() % processes.size()], SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }

  TestFolder folder_;
  Config config_ = folder_.config("snapshots");
  std::string ledgers_ = folder_.path() + "/ledgers";
  Ledger ledger_;  // of all rounds
  std::mt19937_64 random_{seed()};
};

TEST_F(SnapshotCrashTest, WhatWasPromisedIsThereThoughProcessesDieWhileSnapshotsAreTaken) {
  const uint64_t count = rounds(6, 200);
  uint64_t taken = 0;
  for (uint64_t round = 0; round <= count; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    LauncherProcess launcher(config_);
    ASSERT_EQ(launcher.next_line(), "running");
    if (round == 0) {
      const auto created = create_ledger(config_);
      ASSERT_TRUE(created) << created.error().message;
    }
    ASSERT_NO_FATAL_FAILURE(expect_promises_kept());
    if (round == count) {
      kill(launcher.pid(), SIGTERM);
      EXPECT_EQ(launcher.wait(), 0);
      break;
    }
    const uint64_t first = snapshots().at("newest");
    LedgerClients clients(config_, ledgers_, random_());
    // At least one while the clients run, then at any instant.
    EXPECT_TRUE(eventually([&] { return snapshots().at("newest") > first; }));
    const std::chrono::microseconds delay(random_() % 500'000);
    std::this_thread::sleep_for(delay);  // not to synchronise: the instant is the test's input
    taken += snapshots().at("newest").get<uint64_t>() - first;
    kill_something(launcher);
    clients.join();
    ledger_ = clients.ledger();
  }
  EXPECT_GE(taken, count);
}

}  // namespace
}  // namespace atolldb::test
