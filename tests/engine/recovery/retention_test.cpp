// Deletion of log files and snapshots that no slot, pin, reader or kept snapshot needs (R38).
#include "engine/recovery/retention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>

#include "engine/log/log_files.h"
#include "engine/recovery/log_start.h"
#include "engine/snapshot/stored_snapshots.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/engine/snapshot/made_snapshot.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

const std::set<std::string> kDirectories = {"/data", "/fast"};

using Paths = std::vector<std::string>;

Paths sorted(Paths paths) {
  std::ranges::sort(paths);
  return paths;
}

RetentionView view_of(FileSystem& files, std::set<uint32_t> in_use = {}) {
  auto slots = read_savepoint_slots(files, savepoint_path("/data"));
  CHECK(slots.has_value());
  return {"/data", kDirectories, *std::move(slots), std::move(in_use)};
}

Paths logs(FileSystem& files) {
  auto paths = deletable_logs(files, view_of(files));
  EXPECT_TRUE(paths) << paths.error().message;
  return paths ? *paths : Paths{};
}

Paths snapshots(FileSystem& files, std::set<uint32_t> in_use = {}) {
  auto paths = deletable_snapshots(files, view_of(files, std::move(in_use)));
  EXPECT_TRUE(paths) << paths.error().message;
  return paths ? sorted(*paths) : Paths{};
}

std::string log(uint64_t incarnation, uint32_t ordinal) {
  return "/data/node0/" + to_string(LogFileName{incarnation, 0, ordinal});
}

/// Writes the savepoint again, so that both slots have its content.
void write_again(FileSystem& files, Savepoint& savepoint) {
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
}

TEST(Retention, DeletesLogFilesWhoseEpochsBothSlotsCoverButNeverTheNewest) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);  // 3 blocks per epoch, 7 per file: epochs 1-3, 3-5, 5-7, 7-9
  Savepoint& savepoint = data.start.savepoint;
  EXPECT_EQ(logs(data.files), Paths{});
  const auto expect = [&](uint64_t epoch, uint32_t files) {
    const Paths before = logs(data.files);
    ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, epoch), "");
    EXPECT_EQ(logs(data.files), before) << "the other slot needs them";
    write_again(data.files, savepoint);
    Paths expected;
    for (uint32_t ordinal = 0; ordinal < files; ++ordinal) expected.push_back(log(1, ordinal));
    EXPECT_EQ(logs(data.files), expected) << "epoch " << epoch;
  };
  expect(2, 0);  // epoch 3 begins in the first file, which is kept
  expect(3, 1);
  expect(4, 1);
  expect(5, 2);
  expect(9, 3);
  // A start-up after each deletion finds everything that it needs.
  for (const std::string& path : logs(data.files)) {
    ASSERT_TRUE(data.files.remove(path));
    auto start = examine(data.files, "/data");
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(start->recovery_epoch, 9u);
  }
  EXPECT_EQ(logs(data.files), Paths{});
  // The log continues after its last file.
  data.write_all(10, 12);
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->recovery_epoch, 12u);
  EXPECT_EQ(start->streams_to_read.size(), 1u);
}

TEST(Retention, DeletesAllFilesOfIncarnationsThatAreCovered) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 8), "");
  data.write_all(1, 5);
  ASSERT_TRUE(data.writers[0].prepare_next_file());  // the file has no header yet
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start && store_cut(data.files, "/data", *start));
  // Makes a log of another cluster beside the logs of this cluster.
  make_writer(data.files, kSecond, 1000, 1, 8, {1, 2, 3});
  ASSERT_EQ(make_snapshot(data.files, "/data", start->savepoint, 5), "");
  EXPECT_EQ(logs(data.files), Paths{}) << "the older slot lists them";
  write_again(data.files, start->savepoint);
  // All files can be deleted, except the savepoint, the table of directories, the DDL log, the
  // snapshot, and the log of the other cluster.
  EXPECT_EQ(logs(data.files).size(), data.files.paths().size() - 7);
  for (const std::string& path : logs(data.files)) {
    EXPECT_NE(path.find("/log_1_0_"), std::string::npos) << path;
    ASSERT_TRUE(data.files.remove(path));
  }
  EXPECT_EQ(data.begin({kFirst}), "");
}

TEST(Retention, DeletesLogsEvenIfADamagedPinKeepsAllSnapshots) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 2), "");
  ASSERT_TRUE(pin_snapshot(data.files, "/data", savepoint, 1, "damaged"));
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 5), "");
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 9), "");
  const std::string metadata = snapshot_metadata_path("/data", 1);
  data.files.bytes(metadata)[40] ^= std::byte{1};
  const auto deleted = delete_unneeded(data.files, "/data", savepoint, kDirectories, {});
  ASSERT_FALSE(deleted);
  EXPECT_EQ(deleted.error().code, ExitCode::corruption);
  EXPECT_TRUE(deleted.error().message.contains(metadata)) << deleted.error().message;
  EXPECT_TRUE(*data.files.exists(snapshot_metadata_path("/data", 2)));
  EXPECT_FALSE(*data.files.exists(log(1, 2)));
  EXPECT_TRUE(*data.files.exists(log(1, 3)));
}

TEST(Retention, DeletesNothingWhileTheNewestSnapshotCannotBeRead) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 5), "");
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 9), "");
  const std::string metadata = snapshot_metadata_path("/data", 2);
  data.files.bytes(metadata)[40] ^= std::byte{1};
  const Paths before = data.files.paths();
  const auto refused = delete_unneeded(data.files, "/data", savepoint, kDirectories, {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption);
  EXPECT_TRUE(refused.error().message.contains(metadata)) << refused.error().message;
  EXPECT_EQ(data.files.paths(), before);
  const auto slots = read_savepoint_slots(data.files, savepoint_path("/data"));
  ASSERT_TRUE(slots);
  EXPECT_EQ((*slots)[0].savepoint->snapshot + (*slots)[1].savepoint->snapshot, 1u + 2u)
      << "one slot still names the snapshot that can be read";
  data.files.bytes(metadata)[40] ^= std::byte{1};
  const auto deleted = delete_unneeded(data.files, "/data", savepoint, kDirectories, {});
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_FALSE(*data.files.exists(log(1, 2)));
}

TEST(Retention, KeepsWhatAnySlotPinUseOrKeptSnapshotNames) {
  MemoryFileSystem files;
  Savepoint savepoint;
  savepoint.cluster_uuid = kUuid;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  const auto make = [&](uint64_t epoch, std::vector<uint32_t> older) {
    std::vector<SnapshotFilePlace> places;
    for (const uint32_t id : older) places.push_back({id, 0, "/data", kMadePages + 1});
    ASSERT_EQ(make_snapshot(files, "/data", savepoint, epoch, places), "");
  };
  const auto of = [](uint32_t id) {
    const std::string name = "snapshot_" + std::to_string(id);
    return Paths{"/data/coordinator/" + name + ".atsnap", "/data/coordinator/" + name + ".meta",
                 "/data/node0/" + name + ".atsnap"};
  };
  make(1, {});
  ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 1, "first"));
  make(2, {});
  make(3, {2});
  make(4, {2});
  EXPECT_EQ(snapshots(files), (Paths{of(2)[0], of(2)[1]})) << "the other slot names 3";
  write_again(files, savepoint);
  // Snapshot 4 lists some files of snapshot 2. Only these files of snapshot 2 are kept.
  Paths unneeded = {of(2)[0], of(2)[1]};
  const Paths third = of(3);
  unneeded.insert(unneeded.end(), third.begin(), third.end());
  EXPECT_EQ(snapshots(files), sorted(unneeded));
  EXPECT_EQ(snapshots(files, {3}), (Paths{of(2)[0], of(2)[1]}));
  // Makes leftovers of failed jobs, with and without metadata. The files of snapshot 6 are kept,
  // because this id was never taken.
  ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  write_again(files, savepoint);
  ASSERT_EQ(make_snapshot_files(files, "/data", kUuid, 5, 9), "");
  ASSERT_EQ(make_snapshot_files(files, "/data", kUuid, 6, 9), "");
  ASSERT_TRUE(files.create("/data/coordinator/snapshot_4.meta.new", 0));
  const Paths fifth = of(5);
  unneeded.insert(unneeded.end(), fifth.begin(), fifth.end());
  unneeded.push_back("/data/coordinator/snapshot_4.meta.new");
  EXPECT_EQ(snapshots(files), sorted(unneeded));
  // A file of another cluster is kept, even in a directory of this cluster.
  ASSERT_EQ(make_snapshot_file(files, {1}, {3, 2, "/fast", 0}, 7), "");
  EXPECT_EQ(snapshots(files), sorted(unneeded));
  ASSERT_TRUE(unpin_snapshot(files, "/data", savepoint, "first"));
  write_again(files, savepoint);
  EXPECT_EQ(snapshots(files).size(), unneeded.size() + 3);
}

TEST(Retention, DeletesNothingWhileASlotIsDamagedOrMetadataThatKeepsFilesIs) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 3), "");
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 9), "");
  write_again(data.files, savepoint);
  EXPECT_FALSE(logs(data.files).empty());
  EXPECT_FALSE(snapshots(data.files).empty());
  auto image = data.files.copy();
  image->bytes(savepoint_path("/data"))[40] ^= std::byte{1};
  EXPECT_EQ(logs(*image), Paths{});
  EXPECT_EQ(snapshots(*image), Paths{});
  // `delete_unneeded` first writes the damaged slot again. Then both slots count.
  auto deleted = delete_unneeded(*image, "/data", savepoint, kDirectories, {});
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(deleted->size(), 6u);
  data.files.bytes(snapshot_metadata_path("/data", 2))[50] ^= std::byte{1};
  auto refused = deletable_snapshots(data.files, view_of(data.files));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption);
}

/// Makes two incarnations, the first covered by a snapshot, the second covered in part. Also makes
/// snapshots 1 to 3, of which the first is pinned, and leftovers of a failed job.
Savepoint fill(FileSystem& files, std::mt19937_64& random) {
  const auto write = [&](LogWriter& writer, uint64_t first, uint64_t last) {
    for (uint64_t epoch = first; epoch <= last; ++epoch) {
      write_epoch(writer, epoch, 2, epoch - 1, random);
    }
  };
  const auto begin = [&](LogStart& start) {
    auto examined = examine(files, "/data");
    CHECK(examined.has_value());
    start = *std::move(examined);
    CHECK(store_cut(files, "/data", start).has_value());
    if (start.is_new) create_storages(files, start.savepoint.cluster_uuid);
    if (start.recovery_epoch != 0) {
      CHECK(make_snapshot(files, "/data", start.savepoint, start.recovery_epoch).empty());
    }
    LogWriter writer = make_writer(files, kFirst, start.incarnation, start.start_epoch, 8,
                                   start.savepoint.cluster_uuid);
    CHECK(begin_incarnation(files, "/data", start, {kFirst}).has_value());
    return writer;
  };
  LogStart start;
  LogWriter first = begin(start);
  write(first, 1, 8);
  LogWriter second = begin(start);
  write(second, start.start_epoch, start.start_epoch + 8);
  CHECK(pin_snapshot(files, "/data", start.savepoint, 1, "kept").has_value());
  const uint64_t epoch = start.start_epoch;
  CHECK(make_snapshot(files, "/data", start.savepoint, epoch + 3).empty());
  CHECK(make_snapshot(files, "/data", start.savepoint, epoch + 5).empty());
  auto id = take_snapshot_id(files, "/data", start.savepoint);
  CHECK(id && make_snapshot_files(files, "/data", start.savepoint.cluster_uuid, *id, 20).empty());
  return start.savepoint;
}

TEST(Retention, LeavesAGoodStateWhateverChangeACrashInterrupts) {
  std::mt19937_64 random(seed());
  bool is_done = false;
  uint64_t changes = 0;
  for (; !is_done; ++changes) {
    PowerCutFileSystem disk;
    Savepoint savepoint = fill(disk, random);
    auto before = examine(disk, "/data");
    ASSERT_TRUE(before) << before.error().message;
    ASSERT_EQ(before->streams_to_read.size(), 1u);
    HookedFileSystem killed(disk, {}, changes);
    is_done = delete_unneeded(killed, "/data", savepoint, kDirectories, {}).has_value();
    for (uint64_t cut = 0; cut < 6; ++cut) {
      auto image = disk.cut(random());
      auto after = examine(*image, "/data");
      ASSERT_TRUE(after) << changes << ": " << after.error().message;
      EXPECT_EQ(after->recovery_epoch, before->recovery_epoch);
      EXPECT_EQ(after->snapshot, before->snapshot);
      EXPECT_EQ(after->streams_to_read.size(), 1u);
      EXPECT_TRUE(read_snapshot_metadata(*image, "/data", 1)) << "it is pinned";
      auto again = delete_unneeded(*image, "/data", after->savepoint, kDirectories, {});
      ASSERT_TRUE(again) << changes << ": " << again.error().message;
      if (is_done) {
        EXPECT_EQ(*again, Paths{}) << "what was deleted is gone durably";
      }
      auto files = snapshot_files_in(*image, "/data", kDirectories);
      auto logs_left = log_files_in(*image, kDirectories);
      ASSERT_TRUE(files && logs_left);
      EXPECT_EQ(files->size(), 6u) << "of snapshots 1 and 3";
      EXPECT_EQ(logs_left->front().name.incarnation, 2u);
      EXPECT_GT(logs_left->front().name.ordinal, 0u);
    }
  }
  EXPECT_GT(changes, 15u);
}

TEST(StoredSnapshots, AreFoundWhereverMetadataSaysTheyAre) {
  MemoryFileSystem files;
  const SnapshotFilePlace elsewhere = {1, 3, "/elsewhere", kMadePages + 1};
  ASSERT_EQ(make_snapshot_file(files, kUuid, elsewhere, 1), "");
  ASSERT_EQ(make_snapshot_files(files, "/data", kUuid, 1, 1, {elsewhere}), "");
  auto found = snapshot_files_in(files, "/data", kDirectories);
  ASSERT_TRUE(found) << found.error().message;
  Paths paths;
  for (const StoredSnapshotFile& file : *found) paths.push_back(file.path);
  EXPECT_EQ(paths,
            (Paths{"/data/node0/snapshot_1.atsnap", "/elsewhere/node3/snapshot_1.atsnap",
                   "/data/coordinator/snapshot_1.atsnap", "/data/coordinator/snapshot_1.meta"}));
}

TEST(StoredSnapshots, HaveNamesThatAreTakenApartExactly) {
  const auto parsed = parse_snapshot_file_name("snapshot_12.atsnap");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->snapshot, 12u);
  EXPECT_EQ(parsed->kind, StoredSnapshotKind::pages);
  EXPECT_EQ(parse_snapshot_file_name("snapshot_7.meta")->kind, StoredSnapshotKind::metadata);
  EXPECT_EQ(parse_snapshot_file_name("snapshot_7.meta.new")->kind, StoredSnapshotKind::unfinished);
  for (const char* other :
       {"snapshot_.meta", "snapshot_07.meta", "snapshot_7.metas", "snapshot_7", "snapshot_-1.meta",
        "snapshot_4294967296.meta", "xsnapshot_7.meta", ""}) {
    EXPECT_FALSE(parse_snapshot_file_name(other)) << other;
  }
}

}  // namespace
}  // namespace atolldb::test
