// Backups and restores of clusters with checkpoints, on data in memory.
#include <gtest/gtest.h>

#include <string>

#include "tests/engine/checkpoint/made_checkpoint.h"
#include "tests/engine/checkpoint/read_checkpoint.h"
#include "tests/ops/backup/made_backup.h"

namespace atolldb::test {
namespace {

/// Epochs 1 to 9 in the logs of two nodes, and checkpoint 1 with replay epoch 5 and end epoch 7.
class CheckpointBackup : public testing::Test {
 protected:
  CheckpointBackup() {
    data_.scheme = DurabilityScheme::silor;
    EXPECT_EQ(data_.begin({kFirst, kSecond}), "");
    data_.write_all(1, 9);
    EXPECT_TRUE(take_made_checkpoint(files(), "/data", savepoint(), 5, 7, "/fast"));
    EXPECT_TRUE(write_owner(files(), "/data",
                            {"owner of the original", true, "bank", "/data", std::string(kDataRole),
                             *locate_in_memory("/data")}));
    EXPECT_TRUE(files().make_directory(kBackups));
  }

  MemoryFileSystem& files() { return data_.files; }
  Savepoint& savepoint() { return data_.start.savepoint; }
  Result<BackupManifest> back_up(const std::string& id, std::optional<BackupManifest> previous = {},
                                 std::optional<uint64_t> durable_epoch = {}) {
    BackupRequest request;
    request.data_dir = "/data";
    request.directory = kBackups;
    request.id = id;
    request.cluster = "bank";
    request.newest = savepoint().snapshot;
    request.previous = std::move(previous);
    request.durable_epoch = durable_epoch;
    return take_backup(files(), request);
  }

  DataDirectory data_;
};

TEST_F(CheckpointBackup, RestoresEachStateFromTheEndEpochOn) {
  // The backup of a stopped cluster, and of one whose log grows.
  for (const auto& durable : {std::optional<uint64_t>(), std::optional<uint64_t>(9)}) {
    const std::string id = durable ? kSecondBackup : kFirstBackup;
    const auto manifest = back_up(id, {}, durable);
    ASSERT_TRUE(manifest) << manifest.error().message;
    EXPECT_EQ(manifest->oldest_epoch, 7u);
    EXPECT_EQ(manifest->durable_epoch, 9u);
    EXPECT_EQ(manifest->snapshots, (std::vector<BackupSnapshot>{{1, 4}}));
    const auto verified = verify_backup(files(), backup_path(kBackups, id), *manifest, {});
    EXPECT_TRUE(verified) << verified.error().message;
    for (uint64_t epoch = 7; epoch <= 9; ++epoch) {
      const std::string to = "/new" + id + std::to_string(epoch);
      const auto restored = restore(files(), *manifest, epoch, to);
      ASSERT_TRUE(restored) << restored.error().message;
      const auto start = examine(files(), to);
      ASSERT_TRUE(start) << start.error().message;
      ASSERT_TRUE(start->checkpoint);
      EXPECT_EQ(start->savepoint.scheme, DurabilityScheme::silor);
      EXPECT_EQ(start->recovery_epoch, epoch);
      EXPECT_EQ(read_checkpoint_files(files(), *start->checkpoint, [](const LogRecord&) {}), "");
      EXPECT_EQ(gleaned_by(files(), *start), records_of(files(), savepoint(), 4, epoch));
      EXPECT_EQ(start->checkpoint->files.front().directory, to);
    }
  }
}

TEST_F(CheckpointBackup, LinksTheFilesOfTheSameCheckpointAndDropsLogThatANewerOneCovers) {
  const auto first = back_up(kFirstBackup);
  ASSERT_TRUE(first) << first.error().message;
  const auto second = back_up(kSecondBackup, *first);
  ASSERT_TRUE(second) << second.error().message;
  const std::string path = "node0/checkpoint_1_0_0.atcp";
  ASSERT_NE(second->find(path), nullptr);
  EXPECT_EQ(second->find(path)->kind, BackupFileKind::checkpoint_records);
  EXPECT_TRUE(second->find(path)->is_final);
  EXPECT_GE(second->linked_bytes, second->find(path)->bytes);
  ASSERT_EQ(make_checkpoint(files(), "/data", savepoint(), 9, 9), "");
  const auto third = back_up("20261125T040506Z", *second);
  ASSERT_TRUE(third) << third.error().message;
  EXPECT_EQ(third->oldest_epoch, 9u);
  EXPECT_EQ(third->find(path), nullptr);
  EXPECT_LT(third->files.size(), second->files.size()) << "has the log from epoch 9 on only";
  const auto restored = restore(files(), *third, 9, "/new");
  EXPECT_TRUE(restored) << restored.error().message;
}

TEST_F(CheckpointBackup, OfADamagedCheckpointFailsAndNamesTheFile) {
  const std::string path = checkpoint_file_path("/fast", 0, {1, 0, 1});
  files().bytes(path)[kIoBlockBytes + 300] ^= std::byte{1};
  const auto refused = back_up(kFirstBackup);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption);
  EXPECT_TRUE(refused.error().message.starts_with(path)) << refused.error().message;
}

TEST_F(CheckpointBackup, IsFoundDamagedIfAFileOfTheCheckpointIsChangedOrMissing) {
  const auto manifest = back_up(kFirstBackup);
  ASSERT_TRUE(manifest) << manifest.error().message;
  const std::string folder = backup_path(kBackups, kFirstBackup);
  const std::string path = folder + "/node0/checkpoint_1_0_0.atcp";
  files().bytes(path)[kIoBlockBytes + 300] ^= std::byte{1};
  const auto damaged = verify_backup(files(), folder, *manifest, {});
  ASSERT_FALSE(damaged);
  EXPECT_TRUE(damaged.error().message.contains(path)) << damaged.error().message;
  EXPECT_FALSE(restore(files(), *manifest, 9, "/damaged"));
  ASSERT_TRUE(files().remove(path));
  EXPECT_FALSE(verify_backup(files(), folder, *manifest, {}));
}

}  // namespace
}  // namespace atolldb::test
