// Fixture of tests that restore a cluster whose clients keep ledgers, and compare the restored
// state with these ledgers.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/savepoint.h"
#include "shared/file/posix_file_system.h"
#include "tests/cluster/cli_run.h"
#include "tests/cluster/launcher_process.h"
#include "tests/cluster/ledger_cluster.h"

namespace atolldb::test {

/// Returns the names of the pinned snapshots.
inline std::vector<std::string> pins_in(const std::string& data_dir) {
  std::vector<std::string> names;
  PosixFileSystem files;
  const auto read = read_savepoint(files, data_dir);
  EXPECT_TRUE(read && *read);
  if (!read || !*read) return names;
  for (const PinnedSnapshot& pin : (*read)->savepoint.pinned) names.push_back(pin.name);
  return names;
}

class RestoredLedgerTest : public testing::Test {
 protected:
  explicit RestoredLedgerTest(const std::string& cluster) : config_(folder_.config(cluster)) {
    config_.cluster.restart = RestartPolicy::never;
    config_.cluster.hang_limit = std::chrono::minutes(2);
    config_.gleaner.interval = std::chrono::hours(1);  // only the test takes snapshots
    config_.nodes[1].directories = {folder_.path() + "/fast"};
    std::filesystem::create_directories(ledgers_);
  }
  ~RestoredLedgerTest() override {
    for (auto* launcher : {&launcher_, &restored_}) {
      if (*launcher) kill((*launcher)->pid(), SIGKILL);
      if (*launcher) (*launcher)->wait();
    }
    clients_.reset();
  }
  /// Waits until the load has made enough log for the test.
  virtual void await_load() = 0;
  /// Makes further checks of a restored cluster, after those of the ledger. The cluster runs.
  virtual void expect_more(const Config&) {}

  void write_config() const { std::ofstream(file_) << to_toml(config_); }
  void start() {
    launcher_ = std::make_unique<LauncherProcess>(config_);
    ASSERT_EQ(launcher_->next_line(), "running");
  }
  void begin_load() {
    clients_ = std::make_unique<LedgerClients>(config_, ledgers_, random_());
    ASSERT_NO_FATAL_FAILURE(await_load());
  }
  /// Kills one process, and waits for the end of the cluster and of its clients.
  void kill_cluster() {
    const std::vector<std::string> roles = {"launcher", "coordinator", "node0", "node1"};
    const std::string role = roles[random_() % roles.size()];
    SCOPED_TRACE("kill -9 of " + role);
    if (role == "launcher") {
      kill(launcher_->pid(), SIGKILL);
    } else {
      for (const pid_t pid : processes_of(config_.cluster.name, role)) kill(pid, SIGKILL);
    }
    launcher_->wait();
    EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
    launcher_.reset();
    if (clients_) clients_->join();
  }
  Ran atoll(std::vector<std::string> words) const {
    words.insert(words.end(), {"-c", file_});
    return runner_.atoll(std::move(words));
  }
  bool has_checkpoints() const { return config_.durability.scheme == DurabilityScheme::silor; }
  /// Takes a snapshot, or a checkpoint if the cluster takes those.
  void take_snapshot() const {
    const Ran ran = atoll({has_checkpoints() ? "checkpoint" : "snapshot", "take"});
    EXPECT_EQ(ran.code, 0) << ran.error;
  }
  /// Restores the state at the epoch by `atoll restore <from...> --to ... --epoch ...`, starts a
  /// cluster on it, and compares.
  void expect_restored(const std::vector<std::string>& from, uint64_t epoch, const Ledger& ledger) {
    SCOPED_TRACE("restore of " + from.front() + " at epoch " + std::to_string(epoch));
    Config config =
        folder_.config(config_.cluster.name + "-restored" + std::to_string(++restores_));
    std::vector<std::string> words = {"restore"};
    words.insert(words.end(), from.begin(), from.end());
    words.insert(words.end(), {"--to", config.cluster.data_dir, "--epoch", std::to_string(epoch)});
    const Ran ran = runner_.atoll(words);
    ASSERT_EQ(ran.code, 0) << ran.error;
    config.cluster.hang_limit = std::chrono::minutes(2);
    config.memory = config_.memory;
    config.durability.scheme = config_.durability.scheme;
    restored_ = std::make_unique<LauncherProcess>(config);
    ASSERT_EQ(restored_->next_line(), "running");
    auto session = SessionClient::connect(config.cluster.run_dir, 0);
    ASSERT_TRUE(session) << session.error().message;
    const auto state = read_ledger_state(**session);
    ASSERT_TRUE(state) << state.error().message;
    for (const LedgerViolation& one : check_ledger(ledger_at(ledger, epoch), *state)) {
      ADD_FAILURE() << one.text;
    }
    session->reset();
    ASSERT_NO_FATAL_FAILURE(expect_more(config));
    kill(restored_->pid(), SIGTERM);
    EXPECT_EQ(restored_->wait(), 0);
    restored_.reset();
    std::filesystem::remove_all(config.cluster.data_dir);
  }

  TestFolder folder_;
  CliRunner runner_{folder_};
  Config config_;
  std::string file_ = folder_.path() + "/source.toml";
  std::string ledgers_ = folder_.path() + "/ledgers";
  std::string backups_ = folder_.path() + "/backups";
  std::mt19937_64 random_{seed()};
  std::unique_ptr<LauncherProcess> launcher_;
  std::unique_ptr<LauncherProcess> restored_;
  std::unique_ptr<LedgerClients> clients_;

 private:
  uint32_t restores_ = 0;
};

}  // namespace atolldb::test
