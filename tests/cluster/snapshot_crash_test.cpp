// Snapshots or checkpoints of a running cluster, taken as often as possible. Each kind of process
// is killed in each phase of a snapshot job, or during a checkpoint. After the next start-up
// everything promised is there.
#include <gtest/gtest.h>

#include <array>
#include <functional>
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
    config_.durability.checkpoint_interval = std::chrono::milliseconds(20);
    std::filesystem::create_directories(ledgers_);
  }

  void use_checkpoints() { config_.durability.scheme = DurabilityScheme::silor; }
  Json checkpoints() const { return part_of_status("checkpoints"); }

  Json snapshots() const { return part_of_status("snapshots"); }
  Json part_of_status(const char* part) const {
    const auto status = cli::RunningCluster(config_).coordinator(ControlOperation::status, {},
                                                                 Cluster::kDefaultTimeout);
    EXPECT_TRUE(status) << status.error().message;
    return status ? status->at(part) : Json{{"newest", 0}};
  }

  static constexpr std::array<const char*, 4> kVictims = {"launcher", "coordinator", "node0",
                                                          "node1"};
  static constexpr std::array<const char*, 5> kPhases = {"planning", "preparing", "gleaning",
                                                         "combining", "installing"};

  pid_t pid_of(const LauncherProcess& launcher, const std::string& victim) const {
    if (victim == "launcher") return launcher.pid();
    const std::vector<pid_t> processes = processes_of(config_.cluster.name, victim);
    EXPECT_EQ(processes.size(), 1u) << victim;
    return processes.empty() ? launcher.pid() : processes.front();
  }

  /// Kills each victim in each phase, in turn.
  void kill_in_phase(LauncherProcess& launcher, uint64_t round) {
    const pid_t pid = pid_of(launcher, kVictims[round % kVictims.size()]);
    const std::string phase = kPhases[round / kVictims.size() % kPhases.size()];
    // Snapshots follow one another and phases are short, so this polls until it sees the phase.
    EXPECT_TRUE(eventually([&] {
      const Json run = snapshots().value("run", Json::object());
      return run.value("phase", std::string()) == phase;
    })) << phase;
    kill_and_wait(launcher, pid);
  }
  /// Kills each victim, in turn, at any instant of a checkpoint or soon after it. In at least half
  /// of the rounds that is after the end of a checkpoint, so the next recovery has a new one.
  void kill_amid_checkpoint(LauncherProcess& launcher, uint64_t round) {
    const pid_t pid = pid_of(launcher, kVictims[round % kVictims.size()]);
    const std::chrono::microseconds delay(random_() % 30'000);
    SCOPED_TRACE(fmt::format("killed {} us after the checkpoint was seen", delay.count()));
    const bool may_be_amid = round / kVictims.size() % 2 != 0;
    const uint64_t before = checkpoints().value("taken", uint64_t{0});
    EXPECT_TRUE(eventually([&] {
      const Json now = checkpoints();
      return now.value("taken", uint64_t{0}) > before ||
             (may_be_amid && now.value("is_running", false));
    }));
    // this sleep does not synchronise: the instant is the test's input
    std::this_thread::sleep_for(delay);
    kill_and_wait(launcher, pid);
  }
  /// Starts the cluster, checks that all promises are kept, and lets `kill_one` kill a process
  /// under load, `count` times. Then starts it once more, calls `check`, and stops it in order.
  void live_and_crash(uint64_t count,
                      const std::function<void(LauncherProcess&, uint64_t round)>& kill_one,
                      const std::function<void()>& check) {
    for (uint64_t round = 0; round <= count; ++round) {
      SCOPED_TRACE("round " + std::to_string(round));
      // With records, installs also drain delta trees (R78).
      config_.memory.cold_writes = random_() % 2 == 0 ? ColdWrites::records : ColdWrites::pages;
      LauncherProcess launcher(config_);
      ASSERT_EQ(launcher.next_line(), "running");
      if (round == 0) {
        const auto created = create_ledger(config_);
        ASSERT_TRUE(created) << created.error().message;
      }
      ASSERT_NO_FATAL_FAILURE(expect_promises_kept(config_, ledger_));
      if (round == count) {
        check();
        kill(launcher.pid(), SIGTERM);
        EXPECT_EQ(launcher.wait(), 0);
        break;
      }
      LedgerClients clients(config_, ledgers_, random_());
      kill_one(launcher, round);
      clients.join();
      ledger_ = clients.ledger();
    }
  }
  void kill_and_wait(LauncherProcess& launcher, pid_t pid) const {
    kill(pid, SIGKILL);
    launcher.wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  }

  TestFolder folder_;
  Config config_ = folder_.config("snapshots");
  std::string ledgers_ = folder_.path() + "/ledgers";
  Ledger ledger_;  // of all rounds
  std::mt19937_64 random_{seed()};
};

TEST_F(SnapshotCrashTest, WhatWasPromisedIsThereWhicheverProcessDiesInAnyPhaseOfASnapshot) {
  const uint64_t count = rounds(kVictims.size() * kPhases.size(), 200);
  live_and_crash(
      count, [&](LauncherProcess& launcher, uint64_t round) { kill_in_phase(launcher, round); },
      [&] { EXPECT_GT(snapshots().at("newest"), count); });
}

TEST_F(SnapshotCrashTest, WhatWasPromisedIsThereWhicheverProcessDiesDuringACheckpoint) {
  use_checkpoints();
  const uint64_t count = rounds(3 * kVictims.size(), 200);
  live_and_crash(
      count,
      [&](LauncherProcess& launcher, uint64_t round) { kill_amid_checkpoint(launcher, round); },
      [&] { EXPECT_GE(checkpoints().at("newest"), count / 2); });
}

}  // namespace
}  // namespace atolldb::test
