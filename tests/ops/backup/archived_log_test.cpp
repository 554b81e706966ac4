// Restores from a backup and the log of an archive: each epoch, over several incarnations, and
// gaps.
#include "ops/backup/archived_log.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "engine/recovery/retention.h"
#include "tests/coordinator/archive/made_archive.h"
#include "tests/ops/backup/made_backup.h"

namespace atolldb::test {
namespace {

class ArchivedLogTest : public testing::Test {
 protected:
  ArchivedLogTest() {
    std::printf("seed: none, nothing here is random\n");
    EXPECT_TRUE(files().make_directory(kArchive));
  }

  MemoryFileSystem& files() { return data_.files(); }
  /// Runs the archive once, as the running incarnation does.
  void archive() {
    ArchiveRun run(files(), data_.savepoint(), archive_config());
    ASSERT_EQ(run.work(), "");
  }
  void restart() { ASSERT_EQ(data_.data.begin({kFirst, kSecond}), ""); }
  uint64_t start_epoch() const { return data_.data.start.start_epoch; }

  ExtendedBackup extend(const BackupManifest& manifest) {
    const auto content = read_archive(files(), kArchive);
    EXPECT_TRUE(content) << content.error().message;
    auto extended =
        extend_backup(files(), backup_path(kBackups, manifest.id), manifest, kArchive, *content);
    EXPECT_TRUE(extended) << extended.error().message;
    return extended ? *std::move(extended) : ExtendedBackup{};
  }
  /// Restores each epoch in the range, and compares it with the log of the original.
  void expect_states(const ExtendedBackup& extended, uint64_t first, uint64_t last) {
    for (uint64_t epoch = first; epoch <= last; ++epoch) {
      SCOPED_TRACE("epoch " + std::to_string(epoch));
      const std::string to = "/new" + std::to_string(++restores_);
      ASSERT_TRUE(files().make_directory(to));
      RestoreRequest request = restore_request(extended.manifest, epoch, to);
      request.extension = &extended;
      const auto restored = restore_backup(files(), request);
      ASSERT_TRUE(restored) << restored.error().message;
      const auto start = examine(files(), to, {});
      ASSERT_TRUE(start) << start.error().message;
      const uint64_t base = start->savepoint.snapshot_epoch;
      EXPECT_LE(start->recovery_epoch, epoch);
      EXPECT_EQ(gleaned_by(files(), *start), records_of(files(), data_.savepoint(), base, epoch));
      const auto original = read_ddl_log(files(), "/data", data_.savepoint().cluster_uuid);
      ASSERT_TRUE(original);
      EXPECT_EQ(storages_after(start->ddl), storages_after(original->records, epoch));
    }
  }

  BackedUpData data_;
  uint32_t restores_ = 0;
};

TEST_F(ArchivedLogTest, ABackupAndTheArchiveRestoreEachEpochThatTheArchiveReaches) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 25);
  archive();
  const ExtendedBackup extended = extend(manifest);
  EXPECT_GT(extended.manifest.durable_epoch, 20u);
  EXPECT_LT(extended.manifest.durable_epoch, 25u);
  EXPECT_TRUE(extended.end.ends_with(".atlog: is missing")) << extended.end;
  expect_states(extended, manifest.oldest_epoch, extended.manifest.durable_epoch);
}

TEST_F(ArchivedLogTest, StoragesThatAreCreatedAfterTheBackupAreThere) {
  const BackupManifest manifest = data_.back_up();
  auto ddl = DdlLog::open(files(), "/data", data_.savepoint().cluster_uuid);
  ASSERT_TRUE(ddl);
  ASSERT_TRUE(
      ddl->append({DdlOperation::create_storage, 11, 12, "later", StorageType::array, 8, 10}));
  data_.data.write_all(10, 25);
  archive();
  expect_states(extend(manifest), 10, 14);
}

TEST_F(ArchivedLogTest, LaterIncarnationsFollow) {
  const BackupManifest manifest = data_.back_up();
  archive();
  data_.data.write_all(10, 14);
  restart();
  const uint64_t second = start_epoch();
  archive();
  data_.data.write_all(second, second + 6);
  restart();
  const uint64_t third = start_epoch();
  data_.data.write_all(third, third + 12);
  archive();
  const ExtendedBackup extended = extend(manifest);
  EXPECT_GT(extended.manifest.durable_epoch, third);
  EXPECT_EQ(extended.savepoint.incarnations.size(), 3u);
  expect_states(extended, 8, 14);
  expect_states(extended, second, second + 6);
  expect_states(extended, third, extended.manifest.durable_epoch);
}

TEST_F(ArchivedLogTest, ABackupOfACoveredLogIsExtendedByTheNextIncarnation) {
  archive();
  restart();
  archive();
  const uint64_t second = start_epoch();
  ASSERT_EQ(make_snapshot(files(), "/data", data_.savepoint(), 9), "");
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(second, second + 12);
  archive();
  const ExtendedBackup extended = extend(manifest);
  EXPECT_GT(extended.manifest.durable_epoch, second + 5);
  expect_states(extended, second, extended.manifest.durable_epoch);
}

TEST_F(ArchivedLogTest, AMissingFileIsNamedAndEndsTheRange) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 25);
  archive();
  const uint64_t whole = extend(manifest).manifest.durable_epoch;
  std::vector<std::string> archived;
  for (const std::string& path : files().paths()) {
    if (path.starts_with(std::string(kArchive) + "/node1/")) archived.push_back(path);
  }
  ASSERT_GT(archived.size(), 4u);
  const std::string lost = archived[archived.size() - 2];
  ASSERT_TRUE(files().remove(lost));
  const ExtendedBackup extended = extend(manifest);
  EXPECT_EQ(extended.end, lost + ": is missing");
  EXPECT_LT(extended.manifest.durable_epoch, whole);
  expect_states(extended, extended.manifest.durable_epoch, extended.manifest.durable_epoch);
}

TEST_F(ArchivedLogTest, DamageToAnArchivedFileIsRefusedByName) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 25);
  archive();
  const ExtendedBackup extended = extend(manifest);
  ASSERT_FALSE(extended.logs.empty());
  const std::string path = extended.logs.rbegin()->second.path;
  files().bytes(path)[5'000] ^= std::byte{1};
  ASSERT_TRUE(files().make_directory("/new"));
  RestoreRequest request =
      restore_request(extended.manifest, extended.manifest.durable_epoch, "/new");
  request.extension = &extended;
  const auto refused = restore_backup(files(), request);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption);
  EXPECT_TRUE(refused.error().message.starts_with(path)) << refused.error().message;
}

TEST_F(ArchivedLogTest, AnIncarnationThatWasNotArchivedIsAGap) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 14);
  archive();
  // Without an archive, the cluster deletes the log of the second incarnation.
  restart();
  const uint64_t second = start_epoch();
  data_.data.write_all(second, second + 5);
  restart();
  ASSERT_EQ(make_snapshot(files(), "/data", data_.savepoint(), second + 5), "");
  ASSERT_TRUE(delete_unneeded(files(), "/data", data_.savepoint(), {"/data", "/fast"}, {}));
  data_.data.write_all(start_epoch(), start_epoch() + 12);
  archive();
  const ExtendedBackup extended = extend(manifest);
  EXPECT_LT(extended.manifest.durable_epoch, second);
  EXPECT_NE(extended.end.find(fmt::format("to {} is missing", second + 5)), std::string::npos)
      << extended.end;
}

TEST_F(ArchivedLogTest, NoLogLeadsOverASalvage) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 14);
  archive();
  restart();
  const uint64_t second = start_epoch();
  {
    ArchiveRun run(files(), files(), data_.savepoint(), archive_config(), true);
    data_.data.write_all(second, second + 12);
  }
  // The next start-up adds the incarnation of the salvage to the archive as a new one.
  restart();
  data_.data.write_all(start_epoch(), start_epoch() + 12);
  archive();
  const ExtendedBackup extended = extend(manifest);
  EXPECT_LT(extended.manifest.durable_epoch, start_epoch());
  EXPECT_NE(extended.end.find("began with a salvage"), std::string::npos) << extended.end;
}

TEST_F(ArchivedLogTest, TheArchiveOfOtherDataIsRefused) {
  const BackupManifest manifest = data_.back_up();
  archive();
  auto content = read_archive(files(), kArchive);
  ASSERT_TRUE(content);
  content->identity.data_id = "other";
  const auto refused =
      extend_backup(files(), backup_path(kBackups, manifest.id), manifest, kArchive, *content);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::failed);
  EXPECT_TRUE(refused.error().message.starts_with("/archive: is the archive of other data (other)"))
      << refused.error().message;
}

TEST_F(ArchivedLogTest, TimesOfTheArchiveChooseTheEpoch) {
  const BackupManifest manifest = data_.back_up();
  data_.data.write_all(10, 25);
  const uint64_t base = manifest.started_ms + 60'000;
  {
    auto times = EpochTimesWriter::open(files(), "/data", data_.savepoint().cluster_uuid);
    ASSERT_TRUE(times);
    for (const uint64_t epoch : {uint64_t{12}, uint64_t{15}, uint64_t{18}, uint64_t{25}}) {
      ASSERT_TRUE(times->add({epoch, base + epoch * 1'000}));
    }
  }
  archive();
  const ExtendedBackup extended = extend(manifest);
  const auto found = epoch_of_time(kArchive, extended, base + 16'500);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_EQ(found->epoch, 15u);
  const auto late = epoch_of_time(kArchive, extended, base + 26'000);
  ASSERT_FALSE(late) << "the archive does not reach epoch 25";
  EXPECT_NE(late.error().message.find("surely has the commits up to"), std::string::npos);
}

}  // namespace
}  // namespace atolldb::test
