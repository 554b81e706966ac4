// `atoll backup` and `atoll restore` on the files of a stopped cluster.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "ops/backup/backup_folder.h"
#include "ops/cli/backup_data.h"
#include "ops/launcher/data_lock.h"
#include "ops/launcher/directory_owner.h"
#include "ops/launcher/process_lock.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// A stopped cluster without log, whose newest snapshot has epoch 20.
class BackupCommandTest : public testing::Test {
 protected:
  BackupCommandTest() {
    std::printf("seed: none, nothing here is random\n");
    std::string pattern = (fs::temp_directory_path() / "atoll_backup_XXXXXX").string();
    folder_ = fs::canonical(mkdtemp(pattern.data())).string();
    data_ = folder_ + "/data";
    fs::create_directory(data_);
    backup_.data_dir = data_;
    backup_.directory = folder_ + "/backups";
    backup_.json = true;
    EXPECT_TRUE(claim_directories(files_, {"bank", data_, {}, {}, {}}));
    Savepoint savepoint;
    savepoint.cluster_uuid = {7, 7};
    auto ddl = DdlLog::open(files_, data_, savepoint.cluster_uuid);
    EXPECT_TRUE(ddl);
    EXPECT_TRUE(ddl->append(
        {DdlOperation::create_storage, 1, 1, "accounts", StorageType::mastertree, 8, 0}));
    savepoint.ddl_records = 1;
    EXPECT_EQ(test::make_snapshot(files_, data_, savepoint, 10), "");
    EXPECT_EQ(test::make_snapshot(files_, data_, savepoint, 20), "");
  }
  ~BackupCommandTest() override { fs::remove_all(folder_); }

  /// Returns the output, or the message of the error.
  template <typename Command>
  std::string run(Command command, ExitCode expected = ExitCode::success) {
    testing::internal::CaptureStdout();
    const Result<void> done = command();
    std::string text = testing::internal::GetCapturedStdout();
    EXPECT_EQ(done ? ExitCode::success : done.error().code, expected)
        << (done ? text : done.error().message);
    return done ? text : done.error().message;
  }
  /// Returns the id of a new backup.
  std::string back_up() {
    return nlohmann::json::parse(run([&] { return take_backup_of({}, backup_); })).at("id");
  }
  std::string restore(const std::string& from, const std::string& to,
                      ExitCode expected = ExitCode::success) {
    RestoreOptions options = restore_;
    options.from = from;
    options.to = to;
    options.json = true;
    return run([&] { return restore_to(options); }, expected);
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  static bool is_same_file(const std::string& one, const std::string& other) {
    struct stat first{};
    struct stat second{};
    EXPECT_EQ(stat(one.c_str(), &first), 0) << one;
    EXPECT_EQ(stat(other.c_str(), &second), 0) << other;
    return first.st_dev == second.st_dev && first.st_ino == second.st_ino;
  }

  PosixFileSystem files_;
  std::string folder_;
  std::string data_;
  BackupOptions backup_;
  RestoreOptions restore_;
};

TEST_F(BackupCommandTest, TakesListsVerifiesRestoresAndRemoves) {
  const std::string id = back_up();
  const std::string folder = backup_.directory + "/" + id;
  EXPECT_TRUE(is_same_file(folder + "/node0/snapshot_2.atsnap", data_ + "/node0/snapshot_2.atsnap"))
      << "final files are linked on one file system";
  EXPECT_FALSE(fs::exists(folder + "/owner")) << "no start-up may take it for a data directory";
  const nlohmann::json listed =
      nlohmann::json::parse(run([&] { return list_backups_in(backup_); }));
  ASSERT_EQ(listed.at("backups").size(), 1u);
  EXPECT_EQ(listed.at("backups")[0].at("id"), id);
  EXPECT_EQ(listed.at("backups")[0].at("state"), "complete");
  EXPECT_EQ(listed.at("backups")[0].at("durable_epoch"), 20);
  EXPECT_EQ(nlohmann::json::parse(run([&] { return verify_backups_in(backup_); })).at("intact"),
            true);
  const std::string to = folder_ + "/new";
  const nlohmann::json restored = nlohmann::json::parse(restore(backup_.directory, to));
  EXPECT_EQ(restored.at("epoch"), 20);
  EXPECT_EQ(restored.at("backup"), id);
  EXPECT_FALSE(is_same_file(folder + "/node0/snapshot_2.atsnap", to + "/node0/snapshot_2.atsnap"));
  EXPECT_TRUE(check_data_directory(files_, to));
  backup_.id = id;
  run([&] { return remove_backup_in(backup_); });
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(has(run([&] { return remove_backup_in(backup_); }, ExitCode::failed),
                  "holds no backup " + id));
  // The removal of the backup has removed only its links. The data of the cluster are as before.
  const auto lock = lock_dead_data("test", data_, {}, files_);
  EXPECT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(fs::exists(data_ + "/node0/snapshot_2.atsnap"));
}

TEST_F(BackupCommandTest, ASecondBackupRemovesWhatAKilledOneLeft) {
  const std::string first = back_up();
  const std::string killed = "20000101T000000Z";
  fs::create_directories(backup_.directory + "/" + killed + "/coordinator");
  std::ofstream(backup_.directory + "/" + killed + "/coordinator/savepoint") << "half";
  {
    auto read = read_savepoint(files_, data_);
    ASSERT_TRUE(read && *read);
    Savepoint savepoint = (*read)->savepoint;
    ASSERT_TRUE(pin_snapshot(files_, data_, savepoint, 2, std::string(kBackupPinPrefix) + killed));
  }
  EXPECT_TRUE(has(restore(backup_.directory + "/" + killed, folder_ + "/new", ExitCode::failed),
                  killed + ": is incomplete"));
  EXPECT_FALSE(fs::exists(folder_ + "/new")) << "a refused restore makes nothing";
  const nlohmann::json second =
      nlohmann::json::parse(run([&] { return take_backup_of({}, backup_); }));
  EXPECT_GT(second.at("id").get<std::string>(), first);
  EXPECT_EQ(second.at("removed_incomplete"), nlohmann::json::array({killed}));
  EXPECT_EQ(second.at("removed_pins"),
            nlohmann::json::array({std::string(kBackupPinPrefix) + killed}));
  EXPECT_FALSE(fs::exists(backup_.directory + "/" + killed));
  const auto read = read_savepoint(files_, data_);
  ASSERT_TRUE(read && *read);
  EXPECT_TRUE((*read)->savepoint.pinned.empty());
}

TEST_F(BackupCommandTest, RefusesWhatCannotBeMeant) {
  BackupOptions inside = backup_;
  inside.directory = data_ + "/backups";
  EXPECT_TRUE(
      has(run([&] { return take_backup_of({}, inside); }, ExitCode::usage), "lie in one another"));
  BackupOptions foreign = backup_;
  foreign.directory = folder_ + "/foreign";
  fs::create_directory(foreign.directory);
  ASSERT_TRUE(claim_directories(files_, {"other", foreign.directory, {}, {}, {}}));
  EXPECT_TRUE(has(run([&] { return take_backup_of({}, foreign); }, ExitCode::usage),
                  "is a directory of a cluster's data"));
  BackupOptions none = backup_;
  none.directory.clear();
  EXPECT_TRUE(
      has(run([&] { return take_backup_of({}, none); }, ExitCode::usage), "DIR is missing"));
  none.directory = folder_ + "/none";
  EXPECT_TRUE(has(run([&] { return list_backups_in(none); }, ExitCode::failed),
                  "there is no such directory"));
  const std::string id = back_up();
  restore_.epoch = 21;
  EXPECT_TRUE(has(restore(backup_.directory + "/" + id, folder_ + "/new", ExitCode::failed),
                  "epochs 20 to 20, not at 21"));
  restore_.time = "@1";
  EXPECT_TRUE(has(restore(backup_.directory, folder_ + "/new", ExitCode::usage),
                  "--epoch or --time, not both"));
  restore_.epoch.reset();
  EXPECT_TRUE(has(restore(backup_.directory, folder_ + "/new", ExitCode::failed),
                  "no epoch of the backup is known"));
  restore_.time.clear();
  EXPECT_TRUE(has(restore(backup_.directory, data_, ExitCode::failed), "is not empty"));
  EXPECT_FALSE(fs::exists(folder_ + "/new"));
}

TEST_F(BackupCommandTest, LocksAreSharedWithoutAGapAndProbedWithoutTakingThem) {
  const std::string path = folder_ + "/some.lock";
  EXPECT_FALSE(*FolderLock::is_taken(path)) << "the file is missing";
  {
    auto lock = FolderLock::exclusive(path, "the first");
    ASSERT_TRUE(lock);
    EXPECT_TRUE(*FolderLock::is_taken(path));
    const auto refused = FolderLock::shared(path, "the first");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::already_running);
    ASSERT_TRUE(lock->share());
    EXPECT_TRUE(*FolderLock::is_taken(path));
    EXPECT_TRUE(FolderLock::shared(path, "the first"));
    EXPECT_FALSE(FolderLock::exclusive(path, "the first"));
  }
  EXPECT_FALSE(*FolderLock::is_taken(path));
}

TEST_F(BackupCommandTest, RunsAloneOnItsClusterAndOnItsDirectory) {
  {
    const auto lock = lock_dead_data("test", data_, {}, files_);
    ASSERT_TRUE(lock);
    run([&] { return take_backup_of({}, backup_); }, ExitCode::already_running);
  }
  {
    const auto lock = FolderLock::exclusive(data_ + "/backup.lock", "another backup");
    ASSERT_TRUE(lock);
    EXPECT_TRUE(has(run([&] { return take_backup_of({}, backup_); }, ExitCode::already_running),
                    "another `atoll backup` of this cluster"));
  }
  const std::string id = back_up();
  EXPECT_FALSE(*FolderLock::is_taken(data_ + "/backup.lock"))
      << "the file stays, the lock does not";
  const auto lock = FolderLock::shared(folder_lock_path(backup_.directory), "a reader");
  ASSERT_TRUE(lock);
  EXPECT_EQ(nlohmann::json::parse(run([&] { return verify_backups_in(backup_); })).at("intact"),
            true);
  backup_.id = id;
  run([&] { return remove_backup_in(backup_); }, ExitCode::already_running);
}

}  // namespace
}  // namespace atolldb::cli
