// Kept older snapshots (R55), and pins of backups (R65).
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/log/savepoint_snapshots.h"
#include "tests/engine/recovery/kept_rules.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {
namespace {

TEST(KeptSnapshots, KeepTheirLog) { EXPECT_EQ(kept_snapshots_keep_their_log(), ""); }

TEST(KeptSnapshots, AreAsManyAsIsAskedAndNoMore) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  for (uint64_t epoch = 1; epoch < 7; ++epoch) {
    ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, epoch, {}, 3), "");
    ASSERT_EQ(savepoint.kept.size(), std::min<size_t>(2, epoch - 1));
  }
  EXPECT_EQ(savepoint.kept, (std::vector<KeptSnapshot>{{4, 4}, {5, 5}}));
  EXPECT_EQ(savepoint.oldest_epoch(), 4u);
  // From now on, fewer snapshots are kept: two, and then only the newest one.
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 7, {}, 2), "");
  EXPECT_EQ(savepoint.kept, (std::vector<KeptSnapshot>{{6, 6}}));
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 8), "");
  EXPECT_TRUE(savepoint.kept.empty());
  const auto read = read_savepoint(data.files, "/data");
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->savepoint, savepoint);
}

TEST(KeptSnapshots, AreNotRemoved) {
  KeptData kept;
  ASSERT_EQ(kept.make(), "");
  const auto removed =
      remove_snapshot(kept.data.files, "/data", kept.data.start.savepoint, {"/data"}, {}, 1);
  ASSERT_FALSE(removed);
  EXPECT_EQ(removed.error().code, ExitCode::failed);
  EXPECT_NE(removed.error().message.find("is kept"), std::string::npos) << removed.error().message;
}

/// An incarnation stays listed until the oldest kept snapshot covers it.
TEST(KeptSnapshots, KeepTheIncarnationsAfterThem) {
  PowerCutFileSystem files;
  Savepoint savepoint;
  savepoint.largest_incarnation = 3;
  savepoint.largest_epoch = 40;
  savepoint.largest_snapshot = 3;
  savepoint.incarnations = {{1, 1, 10, {}}, {2, 11, 20, {}}, {3, 31, {}, {}}};
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 1, 15, 2));
  EXPECT_EQ(savepoint.incarnations.front().number, 2u);
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 2, 25, 2));
  EXPECT_EQ(savepoint.incarnations.front().number, 2u) << "snapshot 1 needs epochs 16 to 20";
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 3, 35, 2));
  EXPECT_EQ(savepoint.incarnations.front().number, 3u);
  EXPECT_EQ(savepoint.covered_incarnation, 2u);
}

/// An older snapshot is kept while at most kMaxListedIncarnations incarnations follow it. With one
/// more incarnation, the snapshot is dropped together with its log.
TEST(KeptSnapshots, GoWhenTheirLogIsThatOfTooManyIncarnations) {
  for (const uint64_t behind : {uint64_t{kMaxListedIncarnations}, kMaxListedIncarnations + 1}) {
    PowerCutFileSystem files;
    Savepoint savepoint;
    savepoint.largest_snapshot = 2;
    savepoint.snapshot = 1;
    savepoint.snapshot_epoch = 5;
    for (uint64_t number = 1; number <= behind; ++number) {
      savepoint.incarnations.push_back({number, 10 * number, 10 * number + 5, {}});
    }
    savepoint.largest_incarnation = behind;
    savepoint.largest_epoch = 10 * behind + 5;
    ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
    ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 2, 10 * behind + 5, 2));
    EXPECT_EQ(savepoint.kept.size(), behind == kMaxListedIncarnations ? 1u : 0u);
    EXPECT_EQ(savepoint.incarnations.size(), behind == kMaxListedIncarnations ? behind : 0u);
  }
}

/// Without its log, the older snapshot is not used. The start-up reports the damage of the newest
/// one.
TEST(KeptSnapshots, AreNotUsedWithoutTheirLog) {
  KeptData kept;
  ASSERT_EQ(kept.make(), "");
  FileSystem& files = kept.data.files;
  ASSERT_TRUE(files.remove(snapshot_metadata_path("/data", 2)));
  std::string first;
  for (const std::string& path : kept.data.files.paths()) {
    if (path.ends_with(".atlog") && (first.empty() || path < first) &&
        path.find("/node0/") != std::string::npos) {
      first = path;
    }
  }
  ASSERT_TRUE(files.remove(first));
  const auto start = examine(files, "/data");
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ExitCode::corruption);
}

/// The newest snapshot has epochs 4 and 5, so they were durable. Therefore a log without them is
/// corrupt, not torn.
TEST(KeptSnapshots, AreNotUsedWithALogThatEndsBeforeTheNewest) {
  KeptData kept;
  ASSERT_EQ(kept.make(), "");
  FileSystem& files = kept.data.files;
  ASSERT_TRUE(files.remove(snapshot_metadata_path("/data", 2)));
  std::set<std::string> logs;
  for (const std::string& path : kept.data.files.paths()) {
    if (path.ends_with(".atlog")) logs.insert(path);
  }
  ASSERT_GT(logs.size(), 1u);
  logs.erase(logs.begin());  // epoch 4 ends in this file, and epoch 5 begins
  for (const std::string& path : logs) ASSERT_TRUE(files.remove(path));
  const auto start = examine(files, "/data");
  ASSERT_FALSE(start) << "a start up to epoch " << start->recovery_epoch;
  EXPECT_EQ(start.error().code, ExitCode::corruption);
}

/// A backup of snapshot 1 is in progress, while the cluster takes newer snapshots.
TEST(BackupPins, KeepTheLogAfterTheirSnapshot) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 3), "");
  const std::string pin = std::string(kBackupPinPrefix) + "1";
  ASSERT_TRUE(pin_snapshot(data.files, "/data", savepoint, 1, pin));
  EXPECT_EQ(savepoint.oldest_epoch(), 3u);
  const auto logs = [&] {
    size_t count = 0;
    for (const std::string& path : data.files.paths()) count += path.ends_with(".atlog") ? 1 : 0;
    return count;
  };
  const size_t before = logs();
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 9), "");
  EXPECT_EQ(savepoint.oldest_epoch(), 3u);
  const auto clean = [&] {
    const auto deleted = delete_unneeded(data.files, "/data", savepoint, {"/data"}, {});
    EXPECT_TRUE(deleted) << deleted.error().message;
  };
  clean();
  // The log after epoch 3 is complete: a start from snapshot 1 could use it.
  Savepoint older = savepoint;
  older.snapshot_epoch = 3;
  const auto scan = scan_incarnation(data.files, older, older.incarnations.front());
  ASSERT_TRUE(scan) << scan.error().message;
  EXPECT_FALSE(scan->corruption);
  EXPECT_EQ(scan->cut_epoch, 9u);
  const size_t kept = logs();
  EXPECT_LE(kept, before);
  ASSERT_TRUE(unpin_snapshot(data.files, "/data", savepoint, pin));
  EXPECT_EQ(savepoint.oldest_epoch(), 9u);
  clean();
  EXPECT_LT(logs(), kept) << "without the pin nothing needs these files";
}

TEST(BackupPins, KeepIncarnationsOverAStartWithoutCommits) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  data.write_all(1, 9);
  ASSERT_EQ(make_snapshot(data.files, "/data", data.start.savepoint, 3), "");
  const std::string pin = std::string(kBackupPinPrefix) + "1";
  ASSERT_TRUE(pin_snapshot(data.files, "/data", data.start.savepoint, 1, pin));
  ASSERT_EQ(make_snapshot(data.files, "/data", data.start.savepoint, 9), "");
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  ASSERT_EQ(data.start.savepoint.incarnations.size(), 2u);
  EXPECT_EQ(data.start.savepoint.incarnations.front().cut_epoch, 9u);
  ASSERT_TRUE(unpin_snapshot(data.files, "/data", data.start.savepoint, pin));
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  EXPECT_EQ(data.start.savepoint.incarnations.size(), 1u) << "earlier ones are covered";
}

/// A pin that a killed backup has left must not fill the savepoint.
TEST(BackupPins, GoWhenTheirLogIsThatOfTooManyIncarnations) {
  PowerCutFileSystem files;
  Savepoint savepoint;
  savepoint.largest_snapshot = 2;
  savepoint.snapshot = 1;
  savepoint.snapshot_epoch = 5;
  savepoint.pinned = {{1, 5, std::string(kBackupPinPrefix) + "1"}, {1, 5, "of a user"}};
  constexpr uint64_t kCount = kMaxListedIncarnations + 1;
  for (uint64_t number = 1; number <= kCount; ++number) {
    savepoint.incarnations.push_back({number, 10 * number, 10 * number + 5, {}});
  }
  savepoint.largest_incarnation = kCount;
  savepoint.largest_epoch = 10 * kCount + 5;
  ASSERT_TRUE(write_savepoint(files, "/data", savepoint));
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 2, 10 * kCount + 5));
  EXPECT_EQ(savepoint.pinned, (std::vector<PinnedSnapshot>{{1, 5, "of a user"}}));
  EXPECT_TRUE(savepoint.incarnations.empty());
}

}  // namespace
}  // namespace atolldb::test
