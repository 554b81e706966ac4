// Backups of clusters under load, and restores at random epochs. The ledgers of the clients are the
// oracle: the state at an epoch has every promised transaction up to it, and none after it.
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "shared/message/control_client.h"
#include "tests/cluster/restored_ledger.h"

namespace atolldb::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class BackupTest : public RestoredLedgerTest {
 protected:
  BackupTest() : RestoredLedgerTest("backup-source") {
    config_.snapshot.keep = 2;
    write_config();
  }

  void await_load() override {
    for (const uint32_t node : {0u, 1u}) {
      std::error_code missing;
      const uint64_t before = fs::file_size(clients_->file(node), missing);
      const uint64_t known = missing ? 0 : before;
      ASSERT_TRUE(eventually([&] { return clients_->has_written(node, known + 20'000); }));
    }
  }
  Json back_up() const {
    const Ran ran = atoll({"backup", backups_, "--json"});
    EXPECT_EQ(ran.code, 0) << ran.error;
    return Json::parse(ran.out, nullptr, false);
  }
  /// Pins the newest snapshot as `atoll backup` or `atoll snapshot pin` would, under any name.
  void pin(const std::string& name) const {
    const auto pinned = ControlClient(config_.control.endpoint)
                            .call(ControlOperation::snapshot_pin, Json{{"id", 0}, {"name", name}},
                                  std::chrono::minutes(1));
    ASSERT_TRUE(pinned) << pinned.error().message;
  }
  /// Returns the problem that `atoll status` reports of a pin, or null.
  Json problem_of(const std::string& pin) const {
    const Ran ran = atoll({"status", "--json"});
    const Json status = Json::parse(ran.out, nullptr, false);
    EXPECT_TRUE(status.is_object()) << ran.out << ran.error;
    for (const Json& problem : status.value("problems", Json::array())) {
      if (problem.at("what").get<std::string>().starts_with("pin " + pin + " of ")) return problem;
    }
    return {};
  }
  /// Restores three epochs of a backup: its last one, and two random ones.
  void expect_states(const Json& backup, const Ledger& ledger) {
    const uint64_t oldest = backup.at("oldest_epoch");
    const uint64_t last = backup.at("durable_epoch");
    const std::string from = backups_ + "/" + backup.at("id").get<std::string>();
    ASSERT_LE(oldest, last);
    for (const uint64_t epoch : {last, oldest + random_() % (last - oldest + 1),
                                 oldest + random_() % (last - oldest + 1)}) {
      ASSERT_NO_FATAL_FAILURE(expect_restored({from}, epoch, ledger));
    }
  }
  /// Kills a cluster under load in several rounds. Expects that backups before and after each kill
  /// restore random epochs.
  void back_up_under_load();
  std::vector<std::string> pins() const { return pins_in(config_.cluster.data_dir); }
  void expect_intact() const {
    const Ran ran = runner_.atoll({"backup", "verify", backups_});
    EXPECT_EQ(ran.code, 0) << ran.out << ran.error;
  }
};

void BackupTest::back_up_under_load() {
  const uint64_t count = rounds(2, 15);
  for (uint64_t round = 0; round < count; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(start());
    if (round == 0) {
      ASSERT_TRUE(create_ledger(config_));
    }
    ASSERT_NO_FATAL_FAILURE(begin_load());
    take_snapshot();
    ASSERT_NO_FATAL_FAILURE(await_load());
    take_snapshot();
    ASSERT_NO_FATAL_FAILURE(await_load());
    const Json backup = back_up();
    ASSERT_TRUE(backup.is_object());
    EXPECT_TRUE(pins().empty());
    // The cluster continues, and deletes files to which the backup has links.
    ASSERT_NO_FATAL_FAILURE(await_load());
    take_snapshot();
    take_snapshot();
    kill_cluster();
    ASSERT_NO_FATAL_FAILURE(expect_states(backup, clients_->ledger()));
    // The backup of the dead cluster has all that was promised.
    const Json dead = back_up();
    ASSERT_TRUE(dead.is_object());
    ASSERT_NO_FATAL_FAILURE(expect_states(dead, clients_->ledger()));
    expect_intact();
    clients_.reset();
  }
}

TEST_F(BackupTest, UnderLoadHasEveryStateOfItsRangeThoughTheClusterIsKilled) {
  back_up_under_load();
}

TEST_F(BackupTest, WithACheckpointHasEveryStateFromItsEndEpochOn) {
  config_.durability.scheme = DurabilityScheme::silor;
  config_.durability.checkpoint_interval = std::chrono::milliseconds(0);
  write_config();
  back_up_under_load();
}

TEST_F(BackupTest, KilledAtARandomInstantIsRemovedWithItsPinByTheNext) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  const uint64_t count = rounds(5, 60);
  uint64_t incomplete = 0;
  for (uint64_t round = 0; round < count; ++round) {
    ASSERT_NO_FATAL_FAILURE(await_load());
    const pid_t pid =
        runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll", {"backup", backups_, "-c", file_},
                      folder_.path() + "/killed.out", folder_.path() + "/killed.err");
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 300));  // a random instant
    kill(pid, SIGKILL);
    int status = 0;
    waitpid(pid, &status, 0);
    PosixFileSystem files;
    const auto found = list_backups(files, backups_);
    ASSERT_TRUE(found) << found.error().message;
    for (const ListedBackup& backup : *found) {
      EXPECT_EQ(backup.damage, "");
      if (backup.is_complete()) continue;
      ++incomplete;
      const Ran refused = runner_.atoll(
          {"restore", backups_ + "/" + backup.id, "--to", folder_.path() + "/refused"});
      EXPECT_EQ(refused.code, 1) << refused.error;
      EXPECT_NE(refused.error.find(backup.id + ": is incomplete"), std::string::npos)
          << refused.error;
    }
    // The pin that the killed backup left keeps its snapshot and the log after it, even if the
    // cluster takes more snapshots.
    take_snapshot();
  }
  const Json backup = back_up();
  ASSERT_TRUE(backup.is_object());
  EXPECT_TRUE(pins().empty());
  std::printf("%llu incomplete backups\n", static_cast<unsigned long long>(incomplete));
  expect_intact();
  kill_cluster();
  ASSERT_NO_FATAL_FAILURE(expect_states(backup, clients_->ledger()));
}

TEST_F(BackupTest, OfAClusterThatIsKilledMeanwhileEndsAndHarmsNothing) {
  const uint64_t count = rounds(3, 40);
  for (uint64_t round = 0; round < count; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    ASSERT_NO_FATAL_FAILURE(start());
    if (round == 0) {
      ASSERT_TRUE(create_ledger(config_));
    }
    ASSERT_NO_FATAL_FAILURE(begin_load());
    take_snapshot();
    ASSERT_NO_FATAL_FAILURE(await_load());
    const std::string out = folder_.path() + "/meanwhile.out";
    const std::string error = folder_.path() + "/meanwhile.err";
    const pid_t pid = runner_.start(std::string(ATOLL_BIN_DIR) + "/atoll",
                                    {"backup", backups_, "--json", "-c", file_}, out, error);
    std::this_thread::sleep_for(std::chrono::milliseconds(random_() % 300));  // a random instant
    kill_cluster();
    int status = 0;
    waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    const Ledger ledger = clients_->ledger();
    const Json backup = Json::parse(read_text(out), nullptr, false);
    if (backup.is_object()) {
      ASSERT_NO_FATAL_FAILURE(expect_states(backup, ledger));
    } else {
      EXPECT_NE(WEXITSTATUS(status), 0) << read_text(error);
    }
    EXPECT_TRUE(pins().empty()) << "a backup that ends by itself releases its pins";
    const Json after = back_up();
    ASSERT_TRUE(after.is_object());
    ASSERT_NO_FATAL_FAILURE(expect_restored({backups_ + "/" + after.at("id").get<std::string>()},
                                            after.at("durable_epoch"), ledger));
    clients_.reset();
  }
}

TEST_F(BackupTest, HasTheNewestSnapshotAloneIfOnlyOnePinIsLeft) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  ASSERT_NO_FATAL_FAILURE(await_load());
  take_snapshot();
  uint32_t used = 0;
  const auto use_pins = [&](uint32_t count) {
    while (used < count) ASSERT_NO_FATAL_FAILURE(pin("of a user " + std::to_string(++used)));
  };
  ASSERT_NO_FATAL_FAILURE(use_pins(kMaxPinnedSnapshots - 2));
  const Json both = back_up();
  ASSERT_TRUE(both.is_object());
  EXPECT_EQ(both.at("snapshots").size(), 2u);
  ASSERT_NO_FATAL_FAILURE(use_pins(kMaxPinnedSnapshots - 1));
  const Json alone = back_up();
  ASSERT_TRUE(alone.is_object());
  ASSERT_EQ(alone.at("snapshots").size(), 1u);
  EXPECT_EQ(alone.at("oldest_epoch"), alone.at("snapshots")[0].at("epoch"));
  EXPECT_GT(alone.at("oldest_epoch"), both.at("oldest_epoch"));
  ASSERT_NO_FATAL_FAILURE(use_pins(kMaxPinnedSnapshots));
  const Ran refused = atoll({"backup", backups_, "--json"});
  EXPECT_NE(refused.code, 0);
  EXPECT_NE(refused.error.find("there are 64 pins, which is the limit"), std::string::npos)
      << refused.error;
  EXPECT_EQ(pins().size(), kMaxPinnedSnapshots) << "no pin of a user is removed";
  PosixFileSystem files;
  const auto found = list_backups(files, backups_);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->size(), 2u) << "the refused backup leaves no folder";
  kill_cluster();
  ASSERT_NO_FATAL_FAILURE(expect_states(alone, clients_->ledger()));
}

TEST_F(BackupTest, ThatWasKilledIsAProblemUntilItsPinIsRemoved) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  const std::string name = std::string(kBackupPinPrefix) + "20200101T000000Z";
  ASSERT_NO_FATAL_FAILURE(pin(name));
  const Json problem = problem_of(name);
  ASSERT_TRUE(problem.is_object());
  EXPECT_NE(problem.at("what").get<std::string>().find(" days ago"), std::string::npos) << problem;
  EXPECT_NE(problem.at("what_to_do").get<std::string>().find("`atoll snapshot unpin " + name + "`"),
            std::string::npos)
      << problem;
  {
    const auto lock =
        FolderLock::exclusive(backup_lock_path(config_.cluster.data_dir), "a backup in progress");
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_TRUE(problem_of(name).is_null()) << "its backup runs";
  }
  EXPECT_TRUE(problem_of(name).is_object());
  EXPECT_EQ(back_up().at("removed_pins"), Json::array({name}));
  EXPECT_TRUE(problem_of(name).is_null());
}

TEST_F(BackupTest, IsRestoredToATime) {
  ASSERT_NO_FATAL_FAILURE(start());
  ASSERT_TRUE(create_ledger(config_));
  ASSERT_NO_FATAL_FAILURE(begin_load());
  take_snapshot();
  // The coordinator records the time of an epoch once per second.
  const auto now = [] {
    return std::chrono::duration_cast<std::chrono::seconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  };
  const auto begun = now();
  ASSERT_TRUE(eventually([&] { return now() > begun + 3; }));
  const auto wanted = now();
  ASSERT_TRUE(eventually([&] { return now() > wanted + 2; }));
  ASSERT_NO_FATAL_FAILURE(await_load());
  const Json backup = back_up();
  kill_cluster();
  const Ledger ledger = clients_->ledger();
  const std::string to = folder_.path() + "/of-time";
  const Ran ran = runner_.atoll(
      {"restore", backups_, "--to", to, "--time", "@" + std::to_string(wanted), "--json"});
  ASSERT_EQ(ran.code, 0) << ran.error;
  const uint64_t epoch = Json::parse(ran.out).at("epoch");
  EXPECT_LT(epoch, backup.at("durable_epoch").get<uint64_t>());
  EXPECT_GE(epoch, backup.at("oldest_epoch").get<uint64_t>());
  const auto recorded = parse_utc(Json::parse(ran.out).at("time").get<std::string>());
  ASSERT_TRUE(recorded) << recorded.error().message;
  const auto wanted_ms = static_cast<uint64_t>(wanted) * 1000;
  EXPECT_LE(*recorded, wanted_ms);
  EXPECT_GE(*recorded + 3'000, wanted_ms) << "an epoch of the last second is known";
  ASSERT_NO_FATAL_FAILURE(expect_restored({backups_}, epoch, ledger));
}

}  // namespace
}  // namespace atolldb::test
