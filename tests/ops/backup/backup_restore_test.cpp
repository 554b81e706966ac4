// Backups and restores of a cluster's data in memory: what is restored, and what is linked.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ops/backup/backup_time.h"
#include "ops/backup/restored_state.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/ops/backup/made_backup.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Expects that a start-up on `to` recovers exactly the state of `data` at the end of `epoch`.
void expect_state_at(BackedUpData& data, const std::string& to, uint64_t epoch) {
  SCOPED_TRACE("epoch " + std::to_string(epoch));
  MemoryFileSystem& files = data.files();
  const auto start = examine(files, to, {});
  ASSERT_TRUE(start) << start.error().message;
  const Savepoint& restored = start->savepoint;
  const uint64_t base = epoch >= 5 ? 5 : 3;
  EXPECT_EQ(restored.snapshot_epoch, base);
  EXPECT_EQ(start->snapshot.has_value() ? start->snapshot->epoch : 0, base);
  EXPECT_EQ(start->recovery_epoch, epoch);
  EXPECT_EQ(gleaned_by(files, *start), records_of(files, data.savepoint(), base, epoch));
  const auto original = read_ddl_log(files, "/data", restored.cluster_uuid);
  ASSERT_TRUE(original);
  EXPECT_EQ(storages_after(start->ddl), storages_after(original->records, epoch));
  EXPECT_GT(start->start_epoch, 9u) << "no epoch of the original is used again";
  EXPECT_GT(start->incarnation, data.savepoint().largest_incarnation + 1'000'000);
  EXPECT_TRUE(restored.kept.empty() && restored.pinned.empty());
}

TEST(BackupRestore, RestoresTheStateAtEachEpochThatTheManifestLists) {
  std::printf("seed: none, nothing here is random\n");
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  EXPECT_EQ(manifest.oldest_epoch, 3u);
  EXPECT_EQ(manifest.durable_epoch, 9u);
  EXPECT_EQ(manifest.snapshots, (std::vector<BackupSnapshot>{{1, 3}, {2, 5}}));
  EXPECT_EQ(manifest.data_id, "owner of the original");
  for (uint64_t epoch = manifest.oldest_epoch; epoch <= manifest.durable_epoch; ++epoch) {
    const std::string to = "/new" + std::to_string(epoch);
    const auto restored = restore(data.files(), manifest, epoch, to);
    ASSERT_TRUE(restored) << restored.error().message;
    EXPECT_EQ(restored->snapshot_epoch, epoch >= 5 ? 5u : 3u);
    expect_state_at(data, to, epoch);
    const auto owner = read_owner(data.files(), to);
    ASSERT_TRUE(owner && *owner);
    EXPECT_EQ((*owner)->id, restored->id);
    EXPECT_NE((*owner)->id, manifest.data_id);
    EXPECT_EQ((*owner)->location, *locate_in_memory(to));
  }
}

TEST(BackupRestore, WithoutAnOlderSnapshotBeginsWithTheNewest) {
  BackedUpData data;
  BackupRequest request = data.request(kFirstBackup);
  request.older = 0;
  const auto taken = take_backup(data.files(), request);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->oldest_epoch, 5u);
  ASSERT_TRUE(restore(data.files(), *taken, 5, "/new"));
  const auto start = examine(data.files(), "/new", {});
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_TRUE(start->streams_to_read.empty()) << "the snapshot has all that is restored";
  EXPECT_EQ(start->recovery_epoch, 5u);
}

TEST(BackupRestore, SkipsAnOlderSnapshotThatIsDamaged) {
  BackedUpData data;
  std::ranges::fill(data.files().bytes(snapshot_file_path("/data", 0, 1)), std::byte{0xee});
  BackupRequest request = data.request(kFirstBackup);
  std::vector<std::string> warnings;
  request.warn = [&](const std::string& text) { warnings.push_back(text); };
  const auto taken = take_backup(data.files(), request);
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->oldest_epoch, 5u);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(warnings.front().starts_with("snapshot 1 is skipped")) << warnings.front();
  EXPECT_NE(warnings.front().find(snapshot_file_path("/data", 0, 1)), std::string::npos);
}

TEST(BackupRestore, OfADamagedNewestSnapshotFails) {
  BackedUpData data;
  std::ranges::fill(data.files().bytes(snapshot_file_path("/data", 0, 2)), std::byte{0xee});
  const auto taken = take_backup(data.files(), data.request(kFirstBackup));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ExitCode::corruption) << taken.error().message;
}

/// A file system that can link files only within the backups, as if the data were on another
/// device.
class NoLinks : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;
  Result<bool> link(const std::string& from, const std::string& to) override {
    if (!from.starts_with(kBackups)) return false;
    ++links;
    return below().link(from, to);
  }
  uint64_t links = 0;
};

TEST(BackupRestore, ADamagedPageIsFoundUnlessAnEarlierBackupHasTheFile) {
  for (const uint32_t snapshot : {1u, 2u}) {
    SCOPED_TRACE("snapshot " + std::to_string(snapshot));
    BackedUpData data;
    NoLinks files(data.files());
    const auto first = take_backup(files, data.request(kFirstBackup));
    ASSERT_TRUE(first) << first.error().message;
    const std::string path = snapshot_file_path("/data", 0, snapshot);
    data.files().bytes(path)[2 * kPageBytes + 100] ^= std::byte{1};
    BackupRequest request = data.request(kSecondBackup);
    std::vector<std::string> warnings;
    request.warn = [&](const std::string& text) { warnings.push_back(text); };
    const auto taken = take_backup(files, request);
    if (snapshot == 1) {
      ASSERT_TRUE(taken) << taken.error().message;
      EXPECT_EQ(taken->oldest_epoch, 5u);
      ASSERT_EQ(warnings.size(), 1u);
      EXPECT_NE(warnings.front().find(path + ": page 2: "), std::string::npos) << warnings.front();
    } else {
      ASSERT_FALSE(taken);
      EXPECT_EQ(taken.error().code, ExitCode::corruption);
      EXPECT_TRUE(taken.error().message.starts_with(path + ": page 2: ")) << taken.error().message;
    }
    ASSERT_TRUE(remove_backup(files, kBackups, kSecondBackup));
    request.previous = *first;
    const auto healed = take_backup(files, request);
    ASSERT_TRUE(healed) << healed.error().message;
    EXPECT_EQ(healed->oldest_epoch, 3u);
    EXPECT_TRUE(verify_backup(files, backup_path(kBackups, kSecondBackup), *healed, {}));
  }
}

TEST(BackupRestore, OfAClusterWithoutSnapshotHasTheWholeLog) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 4);
  ASSERT_TRUE(write_owner(
      data.files, "/data",
      {"id", true, "bank", "/data", std::string(kDataRole), *locate_in_memory("/data")}));
  ASSERT_TRUE(data.files.make_directory(kBackups));
  const auto taken =
      take_backup(data.files, {"/data", kBackups, kFirstBackup, "bank", 0, 0, {}, {}});
  ASSERT_TRUE(taken) << taken.error().message;
  EXPECT_EQ(taken->oldest_epoch, 0u);
  for (const uint64_t epoch : {uint64_t{0}, uint64_t{2}, uint64_t{4}}) {
    const std::string to = "/new" + std::to_string(epoch);
    const auto restored = restore(data.files, *taken, epoch, to);
    ASSERT_TRUE(restored) << restored.error().message;
    const auto start = examine(data.files, to, {});
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(gleaned_by(data.files, *start),
              records_of(data.files, data.start.savepoint, 0, epoch));
  }
}

/// Writes another epoch with all loggers whenever the backup opens a log file.
class BusyFileSystem : public ForwardingFileSystem {
 public:
  BusyFileSystem(BackedUpData& data, uint64_t seed)
      : ForwardingFileSystem(data.files()), data_(data), random_(seed) {}

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    const bool is_source = path.starts_with("/data/node") || path.starts_with("/fast/node");
    if (is_source && random_() % 2 == 0) write_epoch_partly();
    return below().open_for_reading(path);
  }
  uint64_t durable() const { return next_ - 1 - pending_; }

 private:
  /// Writes an epoch with one logger, or completes it with the other one. So one logger is up to
  /// one epoch ahead of the other, as between two syncs.
  void write_epoch_partly() {
    if (pending_ == 0) {
      first_ = random_() % 2;
      data_.data.write(first_, next_++);
      pending_ = 1;
    } else {
      data_.data.write(1 - first_, next_ - 1);
      pending_ = 0;
    }
  }

  BackedUpData& data_;
  std::mt19937_64 random_;
  uint64_t next_ = 10;
  uint64_t pending_ = 0;
  size_t first_ = 0;
};

TEST(BackupRestore, OfAClusterThatWritesMeanwhileHasAllThatWasDurableBefore) {
  std::mt19937_64 random(seed());
  const uint64_t count = rounds(20, 300);
  for (uint64_t round = 0; round < count; ++round) {
    const uint64_t round_seed = random();
    SCOPED_TRACE("seed of the round: " + std::to_string(round_seed));
    BackedUpData data;
    BusyFileSystem busy(data, round_seed);
    BackupRequest request = data.request(kFirstBackup);
    request.durable_epoch = 9;
    const auto taken = take_backup(busy, request);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_GE(taken->durable_epoch, 9u);
    EXPECT_LE(taken->durable_epoch, busy.durable());
    const uint64_t epoch = 5 + round_seed % (taken->durable_epoch - 4);
    ASSERT_TRUE(restore(data.files(), *taken, epoch, "/new"));
    const auto start = examine(data.files(), "/new", {});
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(gleaned_by(data.files(), *start),
              records_of(data.files(), data.savepoint(), 5, epoch));
  }
}

TEST(BackupRestore, CoversIncarnationsThatEndedAndOneThatRuns) {
  BackedUpData data;
  ASSERT_EQ(data.data.begin({kFirst, kSecond}), "");
  data.data.write_all(data.data.start.start_epoch, data.data.start.start_epoch + 3);
  const uint64_t last = data.data.start.start_epoch + 3;
  const BackupManifest manifest = data.back_up();
  EXPECT_EQ(manifest.durable_epoch, last);
  for (const uint64_t epoch : {uint64_t{4}, uint64_t{9}, last - 2, last}) {
    const std::string to = "/new" + std::to_string(epoch);
    const auto restored = restore(data.files(), manifest, epoch, to);
    ASSERT_TRUE(restored) << restored.error().message;
    const auto start = examine(data.files(), to, {});
    ASSERT_TRUE(start) << start.error().message;
    const uint64_t base = epoch >= 5 ? 5 : 3;
    EXPECT_EQ(gleaned_by(data.files(), *start),
              records_of(data.files(), data.savepoint(), base, epoch));
    // The next start-up stores its cut. Its epochs begin after all epochs of the backup.
    LogStart next = *start;
    EXPECT_TRUE(store_cut(data.files(), to, next));
    EXPECT_GT(next.start_epoch, last);
  }
}

TEST(BackupRestore, ASecondBackupLinksWhatHasNotChangedAndOutlivesTheFirst) {
  BackedUpData data;
  const BackupManifest first = data.back_up();
  data.data.write_all(10, 12);
  const BackupManifest second = data.back_up(kSecondBackup, first);
  EXPECT_EQ(second.durable_epoch, 12u);
  uint64_t linked = 0;
  for (const BackupFile& file : second.files) {
    const BackupFile* before = first.find(file.path);
    if (!file.is_final || before == nullptr || !before->is_final) continue;
    EXPECT_EQ(before->crc32c, file.crc32c) << file.path;
    linked += file.bytes;
  }
  EXPECT_GT(linked, 0u);
  EXPECT_GE(second.linked_bytes, linked);
  ASSERT_TRUE(remove_backup(data.files(), kBackups, first.id));
  const auto left = list_backups(data.files(), kBackups);
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1u);
  EXPECT_EQ(left->front().id, second.id);
  const auto intact = verify_backup(data.files(), backup_path(kBackups, second.id), second, {});
  EXPECT_TRUE(intact) << intact.error().message;
}

TEST(BackupRestore, OnAnotherDeviceCopiesFirstAndLinksEarlierBackupsLater) {
  BackedUpData data;
  NoLinks files(data.files());
  const auto first = take_backup(files, data.request(kFirstBackup));
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_EQ(first->linked_bytes, 0u);
  data.data.write_all(10, 12);
  BackupRequest request = data.request(kSecondBackup);
  request.previous = *first;
  const auto second = take_backup(files, request);
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_GT(files.links, 0u);
  EXPECT_GT(second->linked_bytes, 0u);
  EXPECT_LT(second->linked_bytes, second->bytes());
  for (const BackupManifest* manifest : {&*first, &*second}) {
    const auto intact = verify_backup(files, backup_path(kBackups, manifest->id), *manifest, {});
    EXPECT_TRUE(intact) << intact.error().message;
  }
  ASSERT_TRUE(restore(data.files(), *second, 11, "/new"));
  const auto start = examine(data.files(), "/new", {});
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(gleaned_by(data.files(), *start), records_of(data.files(), data.savepoint(), 5, 11));
}

/// A restored copy continues under the same uuid, with other content under the same names.
TEST(BackupRestore, ABackupOfOtherDataLinksNothingOfIt) {
  BackedUpData data;
  BackupManifest first = data.back_up();
  first.data_id = "another data directory";
  for (BackupFile& file : first.files) file.crc32c ^= 1;  // a link would take over this wrong sum
  const BackupManifest second = data.back_up(kSecondBackup, first);
  const auto intact = verify_backup(data.files(), backup_path(kBackups, second.id), second, {});
  EXPECT_TRUE(intact) << intact.error().message;
}

/// If a volume with the data was set back, files have the same names and ids, but other content.
TEST(BackupRestore, AFileOfTheSameNameWithAnotherBeginIsNotLinkedFromTheEarlierBackup) {
  BackedUpData data;
  const BackupManifest first = data.back_up();
  const auto log = std::ranges::find_if(first.files, [](const BackupFile& file) {
    return file.kind == BackupFileKind::log && file.is_final;
  });
  ASSERT_NE(log, first.files.end());
  const std::string earlier = path_in(backup_path(kBackups, first.id), log->path);
  const auto copy = data.files().copy();  // in the copy, linked names have separate bytes
  copy->bytes(earlier)[kIoBlockBytes - 1] ^= std::byte{1};
  BackupRequest request = data.request(kSecondBackup);
  request.previous = first;
  const auto second = take_backup(*copy, request);
  ASSERT_TRUE(second) << second.error().message;
  const auto intact = verify_backup(*copy, backup_path(kBackups, second->id), *second, {});
  EXPECT_TRUE(intact) << intact.error().message;
}

TEST(BackupRestore, RestoredFilesAreNoLinks) {
  BackedUpData data;
  const BackupManifest manifest = data.back_up();
  ASSERT_TRUE(restore(data.files(), manifest, 9, "/new"));
  for (const std::string& path : data.files().paths()) {
    if (path.starts_with("/new/")) std::ranges::fill(data.files().bytes(path), std::byte{0xee});
  }
  const auto intact = verify_backup(data.files(), backup_path(kBackups, manifest.id), manifest, {});
  EXPECT_TRUE(intact) << intact.error().message;
  const auto original = examine(data.files(), "/data", {});
  EXPECT_TRUE(original) << original.error().message;
}

/// A snapshot is planned after its epoch, so it may name a storage that was created later.
TEST(BackupRestore, AStorageThatASnapshotNamesEarlyDoesNotExistBeforeItsCreation) {
  BackedUpData data;
  data.change_storages(
      2, [](auto& storages) { storages.push_back({10, StorageType::mastertree, "late", {}, 0}); });
  const BackupManifest manifest = data.back_up();
  const auto restored = restore(data.files(), manifest, 5, "/new");
  ASSERT_TRUE(restored) << restored.error().message;
  expect_state_at(data, "/new", 5);
}

/// A snapshot is planned after its epoch, so it may lack a storage that is dropped after its epoch.
TEST(BackupRestore, AStorageThatTheSnapshotLacksIsNotThereWithoutItsContent) {
  BackedUpData data;
  data.change_storages(2, [](auto& storages) {
    std::erase_if(storages, [](const SnapshotStorage& storage) { return storage.id == 2; });
  });
  const BackupManifest manifest = data.back_up();
  for (const uint64_t epoch : {uint64_t{4}, uint64_t{6}}) {
    const std::string to = "/new" + std::to_string(epoch);
    const auto restored = restore(data.files(), manifest, epoch, to);
    ASSERT_TRUE(restored) << restored.error().message;
    const auto start = examine(data.files(), to, {});
    ASSERT_TRUE(start) << start.error().message;
    // Epoch 4 is restored from snapshot 1, of epoch 3, which has the content of the storage.
    EXPECT_EQ(storages_after(start->ddl).contains("s2"), epoch == 4) << epoch;
  }
}

/// The pins of a backup may be given up before it reads the savepoint (R65).
TEST(BackupRestore, OfASnapshotThatIsNotKeptAnyMoreIsRefused) {
  BackedUpData data;
  BackupRequest request = data.request(kFirstBackup);
  const std::string pin = std::string(kBackupPinPrefix) + kFirstBackup;
  ASSERT_TRUE(pin_snapshot(data.files(), "/data", data.savepoint(), request.older, pin));
  ASSERT_EQ(make_snapshot(data.files(), "/data", data.savepoint(), 8, {}, 2), "");
  const auto pinned = take_backup(data.files(), request);
  ASSERT_TRUE(pinned) << pinned.error().message;
  EXPECT_EQ(pinned->oldest_epoch, 3u);
  ASSERT_TRUE(remove_backup(data.files(), kBackups, kFirstBackup));
  // A user's pin keeps the pages of the snapshot, but not the log after it.
  ASSERT_TRUE(pin_snapshot(data.files(), "/data", data.savepoint(), request.older, "of a user"));
  ASSERT_TRUE(unpin_snapshot(data.files(), "/data", data.savepoint(), pin));
  const auto taken = take_backup(data.files(), request);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ExitCode::failed);
  EXPECT_NE(taken.error().message.find("snapshot 1 and the log after it are not kept any more"),
            std::string::npos)
      << taken.error().message;
}

TEST(BackupRestore, FindsTheEpochOfATime) {
  BackedUpData data;
  const uint64_t now = unix_ms_now();
  {
    auto times = EpochTimesWriter::open(data.files(), "/data", data.savepoint().cluster_uuid);
    ASSERT_TRUE(times) << times.error().message;
    for (const uint64_t epoch : {2u, 4u, 6u, 8u}) {
      ASSERT_TRUE(times->add({epoch, now - 100'000 + epoch * 1'000}));
    }
  }
  const BackupManifest manifest = data.back_up();
  const std::string folder = backup_path(kBackups, manifest.id);
  const auto at = [&](uint64_t unix_ms) {
    return epoch_of_time(data.files(), folder, manifest, unix_ms);
  };
  EXPECT_EQ(at(now - 94'000)->epoch, 6u);
  EXPECT_EQ(at(now - 92'001)->epoch, 6u);
  EXPECT_EQ(at(now - 92'000)->epoch, 8u);
  EXPECT_EQ(at(now - 1'000)->epoch, 8u);
  const auto early = at(now - 97'000);  // epoch 2, which the backup does not have
  ASSERT_FALSE(early);
  EXPECT_NE(early.error().message.find("the first known one is " + utc_text(now - 96'000)),
            std::string::npos)
      << early.error().message;
  const auto late = at(manifest.started_ms + 1);
  ASSERT_FALSE(late);
  EXPECT_NE(late.error().message.find("use a later backup"), std::string::npos);
  ASSERT_TRUE(restore(data.files(), manifest, 6, "/new"));
  const auto kept = read_epoch_times(data.files(), "/new", data.savepoint().cluster_uuid);
  ASSERT_TRUE(kept);
  ASSERT_EQ(kept->size(), 1u) << "later epochs mean nothing in the restored data";
  EXPECT_EQ(kept->front().epoch, 6u) << "earlier ones are before its only snapshot";
}

TEST(BackupRestore, ChoosesTheNewestBackupThatHasTheEpoch) {
  BackedUpData data;
  const BackupManifest first = data.back_up();
  data.data.write_all(10, 12);
  const BackupManifest second = data.back_up(kSecondBackup, first);
  EXPECT_EQ(choose_backup(data.files(), kBackups, {})->id, second.id);
  EXPECT_EQ(choose_backup(data.files(), kBackups, 12)->id, second.id);
  EXPECT_EQ(choose_backup(data.files(), kBackups, 4)->id, second.id);
  const auto none = choose_backup(data.files(), kBackups, 13);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ExitCode::failed);
  EXPECT_NE(none.error().message.find("20261124T040506Z: epochs 3 to 12"), std::string::npos)
      << none.error().message;
  ASSERT_TRUE(data.files().remove(manifest_path(backup_path(kBackups, second.id))));
  EXPECT_EQ(choose_backup(data.files(), kBackups, 4)->id, first.id);
}

TEST(BackupTime, IdsAscendThoughTheClockIsSetBack) {
  const uint64_t time = uint64_t{1795406706} * 1000;
  const std::string id = next_backup_id(time, {});
  EXPECT_EQ(id, "20261123T040506Z");
  EXPECT_EQ(next_backup_id(time, {id}), "20261123T040507Z");
  EXPECT_EQ(next_backup_id(time - 5'000'000, {id}), "20261123T040507Z");
  EXPECT_EQ(next_backup_id(time, {"99991231T235958Z"}), "99991231T235959Z");
  EXPECT_EQ(next_backup_id(time, {"99991231T235959Z"}), "99991231T235959Z") << "the last one";
  EXPECT_EQ(unix_ms_of_id(id), time);
  for (const char* other : {"", "lock", "20261123T040506", "20261323T040506Z", "20260230T000000Z",
                            "20261123T040506Zx"}) {
    EXPECT_FALSE(is_backup_id(other)) << other;
  }
}

TEST(BackupTime, ReadsTheTimesThatItWrites) {
  std::mt19937_64 random(seed());
  for (int i = 0; i < 1000; ++i) {
    const uint64_t time = random() % 4'102'444'800'000;
    const auto read = parse_utc(utc_text(time));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(*read, time);
  }
  const uint64_t time = uint64_t{1795406706} * 1000;
  for (const char* text : {"2026-11-23T04:05:06Z", "2026-11-23 05:05:06+01:00", "@1795406706",
                           "2026-11-23T03:35:06-00:30", "2026-11-23T04:05:06.000"}) {
    const auto read = parse_utc(text);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, time) << text;
  }
  for (const char* text : {"", "now", "2026-11-23", "2026-02-30T00:00:00Z", "2026-11-23T24:00:00Z",
                           "@-1", "@1x", "2026-11-23T04:05:06.0000Z", "2026-11-23T04:05:06+1:00"}) {
    const auto read = parse_utc(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, ExitCode::usage);
  }
}

}  // namespace
}  // namespace atolldb::test
