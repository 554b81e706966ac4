// Archives of clusters under load that are killed, and restores at random epochs from one backup
// and the archive. The ledgers of the clients are the oracle. If the archive fails, commits
// continue.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <utility>

#include "engine/log/log_files.h"
#include "shared/base/process_id.h"
#include "tests/cluster/restored_ledger.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class ArchiveTest : public RestoredLedgerTest {
 protected:
  ArchiveTest() : RestoredLedgerTest("archive-source") {
    config_.cluster.epoch = std::chrono::milliseconds(2);  // markers of epochs fill the log soon
    // Early ends would make more files than a command for each file can copy.
    config_.cluster.epoch_min = config_.cluster.epoch;
    config_.archive.directory = archive_;
    config_.archive.retry = std::chrono::milliseconds(100);
    write_config();
  }

  /// Waits until each logger has closed two more files, so that there is something to archive.
  void await_load() override {
    for (const std::string& node : log_folders()) {
      const uint32_t before = newest_ordinal(node);
      ASSERT_TRUE(eventually([&] { return newest_ordinal(node) >= before + 2; }));
    }
  }
  std::vector<std::string> log_folders() const {
    return {config_.cluster.data_dir + "/node0", folder_.path() + "/fast/node1"};
  }
  /// Returns the ordinal of the newest log file of the newest incarnation.
  static uint32_t newest_ordinal(const std::string& folder) {
    std::pair<uint64_t, uint32_t> newest = {0, 0};
    for (const auto& entry : fs::directory_iterator(folder)) {
      const auto name = parse_log_file_name(entry.path().filename().string());
      if (name) newest = std::max(newest, std::pair(name->incarnation, name->ordinal));
    }
    return newest.second;
  }
  void stop_cluster() {
    kill(launcher_->pid(), SIGTERM);
    EXPECT_EQ(launcher_->wait(), 0);
    launcher_.reset();
    if (clients_) clients_->join();
  }
  void back_up() const {
    const Ran ran = atoll({"backup", backups_});
    EXPECT_EQ(ran.code, 0) << ran.error;
  }
  Json status() const {
    const Ran ran = atoll({"status", "--json"});
    return Json::parse(ran.out, nullptr, false);
  }
  Json archive_status() const {
    const Json all = status();
    return all.is_object() ? all.value("archive", Json::object()) : Json::object();
  }
  /// Returns the problem that `atoll status` reports about the archive, or an empty text.
  std::string archive_problem() const {
    const Json all = status();
    if (!all.is_object()) return "no status";
    for (const Json& problem : all.at("problems")) {
      const std::string what = problem.at("what");
      if (what.contains("archive")) return what;
    }
    return "";
  }
  /// Waits until all closed log files are archived.
  void await_archive() const {
    ASSERT_TRUE(eventually([&] {
      const Json archive = archive_status();
      return archive.value("waiting_files", 1) == 0 && archive.value("error", "?").empty();
    })) << archive_status().dump(2);
  }
  size_t log_file_count() const {
    size_t count = 0;
    for (const std::string& node : log_folders()) {
      for (const auto& entry : fs::directory_iterator(node)) {
        if (parse_log_file_name(entry.path().filename().string())) ++count;
      }
    }
    return count;
  }
  Ran restore(const std::string& to, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {"restore",   backups_, "--to",  to,
                                      "--archive", archive_, "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return runner_.atoll(std::move(words));
  }
  /// Restores the last state that the archive has, and returns its epoch.
  uint64_t last_epoch() const {
    const std::string to = folder_.path() + "/last";
    const Ran ran = restore(to);
    EXPECT_EQ(ran.code, 0) << ran.error;
    fs::remove_all(to);
    const Json restored = Json::parse(ran.out, nullptr, false);
    return restored.is_object() ? restored.at("epoch").get<uint64_t>() : 0;
  }

  /// Restores and checks the states at the last epoch of the archive, and at random ones since the
  /// first backup.
  void expect_states(uint64_t first, const Ledger& ledger) {
    const uint64_t last = last_epoch();
    ASSERT_GT(last, first) << "the archive has nothing after the backup";
    ASSERT_NO_FATAL_FAILURE(expect_restored(sources(), last, ledger));
    for (uint64_t i = 0; i < rounds(1, 3); ++i) {
      ASSERT_NO_FATAL_FAILURE(
          expect_restored(sources(), first + random_() % (last - first + 1), ledger));
    }
  }
  /// Returns the last epoch of the only backup.
  uint64_t backup_epoch() const {
    const Ran ran = runner_.atoll({"backup", "ls", backups_, "--json"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    return Json::parse(ran.out).at("backups").at(0).at("durable_epoch");
  }

  std::vector<std::string> sources() const { return {backups_, "--archive", archive_}; }

  const std::string archive_ = folder_.path() + "/archive";
};

TEST_F(ArchiveTest, OneBackupAndTheArchiveHaveEveryStateThoughTheClusterIsKilled) {
  fs::create_directory(archive_);
  const uint64_t count = rounds(2, 20);
  for (uint64_t round = 0; round < count; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(start());
    if (round == 0) {
      ASSERT_TRUE(create_ledger(config_));
    }
    ASSERT_NO_FATAL_FAILURE(begin_load());
    take_snapshot();
    if (round == 0) back_up();
    // After each snapshot the cluster may delete log files. The restores need these files from the
    // archive.
    for (int part = 0; part < 3; ++part) {
      ASSERT_NO_FATAL_FAILURE(await_load());
      take_snapshot();
    }
    if (random_() % 2 == 0) await_archive();
    kill_cluster();
    if (round + 1 < count) clients_.reset();
  }
  ASSERT_NO_FATAL_FAILURE(expect_states(backup_epoch(), clients_->ledger()));
}

TEST_F(ArchiveTest, AMissingDirectoryKeepsTheLogWhileCommitsGoOnAndIsCaughtUpWith) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  back_up();
  for (int part = 0; part < 3; ++part) {
    ASSERT_NO_FATAL_FAILURE(await_load());
    take_snapshot();
  }
  ASSERT_TRUE(eventually([&] { return archive_status().value("waiting_files", 0) > 1; }));
  const Json failing = archive_status();
  EXPECT_EQ(failing.at("error"),
            archive_ + ": the directory of the archive is missing: make or mount it");
  EXPECT_TRUE(archive_problem().starts_with("the archive has failed for")) << archive_problem();
  const size_t kept = log_file_count();
  EXPECT_GT(kept, failing.at("waiting_files").get<size_t>());
  ASSERT_NO_FATAL_FAILURE(await_load());
  fs::create_directory(archive_);
  ASSERT_NO_FATAL_FAILURE(await_archive());
  EXPECT_EQ(archive_problem(), "");
  ASSERT_NO_FATAL_FAILURE(await_load());
  take_snapshot();
  EXPECT_LT(log_file_count(), kept) << "archived log is deleted";
  ASSERT_NO_FATAL_FAILURE(await_archive());
  kill_cluster();
  ASSERT_NO_FATAL_FAILURE(expect_states(backup_epoch(), clients_->ledger()));
}

TEST_F(ArchiveTest, ACommandThatFailsOrHangsKeepsTheLogAndOneThatWorksCatchesUp) {
  fs::create_directory(archive_);
  config_.archive.directory = "";
  config_.archive.command = "test %p = %f";  // this command always fails
  write_config();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  back_up();
  ASSERT_NO_FATAL_FAILURE(await_load());
  ASSERT_TRUE(eventually([&] {
    return archive_status().value("error", "").contains("the command ended with exit code 1");
  })) << archive_status().dump(2);
  ASSERT_NO_FATAL_FAILURE(await_load());
  stop_cluster();
  clients_.reset();

  config_.archive.command = "sleep 600 # %p %f";
  config_.archive.timeout = std::chrono::milliseconds(100);
  write_config();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  ASSERT_TRUE(eventually([&] {
    return archive_status().value("error", "").contains("the command was killed after 100ms");
  })) << archive_status().dump(2);
  ASSERT_NO_FATAL_FAILURE(await_load());
  kill_cluster();
  clients_.reset();

  config_.archive.command = "mkdir -p $(dirname " + archive_ + "/%f) && cp -n %p " + archive_ +
                            "/%f && cmp %p " + archive_ + "/%f";
  config_.archive.timeout = std::chrono::minutes(1);
  write_config();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_NO_FATAL_FAILURE(begin_load());
  ASSERT_NO_FATAL_FAILURE(await_load());
  ASSERT_NO_FATAL_FAILURE(await_archive());
  kill_cluster();
  ASSERT_NO_FATAL_FAILURE(expect_states(backup_epoch(), clients_->ledger()));
}

TEST_F(ArchiveTest, NoProcessOfTheCommandOutlivesAKilledCoordinator) {
  const std::string file = folder_.path() + "/sleeper";
  config_.archive.directory = "";
  config_.archive.command = "sh -c 'echo $$ > " + file + ".new; mv " + file + ".new " + file +
                            "; exec sleep 600' & wait # %p %f";
  write_config();
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  ASSERT_TRUE(eventually([&] { return fs::exists(file); }));
  const auto sleeper = find_process(static_cast<pid_t>(std::stol(read_text(file))));
  ASSERT_TRUE(sleeper);
  const auto coordinators = processes_of(config_.cluster.name, "coordinator");
  ASSERT_EQ(coordinators.size(), 1u) << "the guard of the command looks like a coordinator";
  kill(coordinators[0], SIGKILL);
  launcher_->wait();
  launcher_.reset();
  EXPECT_TRUE(eventually([&] { return !is_alive(*sleeper); }));
  EXPECT_TRUE(eventually([&] { return processes_of(config_.cluster.name).empty(); }));
  clients_->join();
}

TEST_F(ArchiveTest, AGapIsRefusedWithTheNameOfTheMissingFile) {
  fs::create_directory(archive_);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  back_up();
  for (int part = 0; part < 5; ++part) {
    ASSERT_NO_FATAL_FAILURE(await_load());
  }
  ASSERT_NO_FATAL_FAILURE(await_archive());
  kill_cluster();
  const uint64_t last = last_epoch();
  std::vector<std::string> logs;
  for (const auto& entry : fs::directory_iterator(archive_ + "/node0")) {
    logs.push_back(entry.path().string());
  }
  std::ranges::sort(logs);
  ASSERT_GT(logs.size(), 2u);
  const std::string lost = logs[logs.size() / 2];
  fs::remove(lost);
  const Ran refused = restore(folder_.path() + "/refused", {"--epoch", std::to_string(last)});
  EXPECT_EQ(refused.code, 1) << refused.out;
  EXPECT_NE(refused.error.find(lost + ": is missing"), std::string::npos) << refused.error;
}

TEST_F(ArchiveTest, TheArchiveOfOtherDataIsRefusedAtTheStart) {
  fs::create_directory(archive_);
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(eventually([&] { return fs::exists(archive_ + "/identity.json"); }));
  const std::string other = runner_.config(
      "archive-other",
      "[durability]\nmode = \"durable\"\n[archive]\ndirectory = \"" + archive_ + "\"\n");
  const Ran refused = runner_.atoll({"up", "-c", other});
  EXPECT_EQ(refused.code, 11) << refused.error;
  EXPECT_NE(refused.error.find(archive_ + ": is the archive of other data"), std::string::npos)
      << refused.error;
  stop_cluster();
}

}  // namespace
}  // namespace atolldb::test
