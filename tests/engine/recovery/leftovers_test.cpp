// Removal of leftovers of given-up start-ups (R54).
#include "engine/recovery/leftovers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/recovery/leftover_rules.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

LogStart next_start(FileSystem& files) {
  auto start = examine(files, "/data", {"/fast"});
  EXPECT_TRUE(start) << start.error().message;
  EXPECT_TRUE(store_cut(files, "/data", *start));
  return *start;
}

Result<RemovedLeftovers> remove_at(FileSystem& files, LogStart& start) {
  return remove_leftovers(files, "/data", start.savepoint, kLeftoverDirectories, start.incarnation);
}

TEST(Leftovers, OfTenStartsAreWhatOneLeaves) {
  EXPECT_EQ(ten_given_up_starts_leave_what_one_does(), "");
}

TEST(Leftovers, AreAllThatAStartMadeAndNothingElse) {
  MemoryFileSystem files;
  fill_directory(files);
  const std::vector<std::string> before = files.paths();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(give_up_a_start(files, false), "");
  LogStart start = next_start(files);
  const auto removed = remove_at(files, start);
  ASSERT_TRUE(removed) << removed.error().message;
  // Each start-up leaves two files of pages, a metadata file, an unfinished copy of the metadata, a
  // sorted run, and two logs.
  EXPECT_EQ(removed->removed.size(), 3u * 7);
  EXPECT_TRUE(removed->damaged_logs.empty());
  EXPECT_EQ(files.paths(), before);
  const auto again = remove_at(files, start);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_TRUE(again->removed.empty());
}

/// Files with commits, files of unknown content, files of other clusters and files of this start-up
/// are kept, because they are not leftovers.
TEST(Leftovers, AreNoFilesWithMoreThanAHeader) {
  MemoryFileSystem files;
  fill_directory(files);
  ASSERT_EQ(give_up_a_start(files), "");
  const uint64_t given_up = examine(files, "/data", {"/fast"})->incarnation - 1;
  const std::string log = "/fast/node1/" + to_string(LogFileName{given_up, 0, 0});
  const auto kept = [&](MemoryFileSystem& image) {
    LogStart start = next_start(image);
    const auto removed = remove_at(image, start);
    EXPECT_TRUE(removed) << removed.error().message;
    const bool stays = *image.exists(log);
    if (stays) {
      EXPECT_LE(removed->damaged_logs.size(), 1u);
    }
    return stays;
  };
  EXPECT_FALSE(kept(*files.copy())) << "a header";
  auto torn = files.copy();
  std::fill_n(torn->bytes(log).begin(), 512, std::byte{});
  EXPECT_FALSE(kept(*torn)) << "half of a header";
  auto empty = files.copy();
  empty->bytes(log).clear();
  EXPECT_FALSE(kept(*empty)) << "a file that a kill left without its blocks";
  auto more = files.copy();
  more->bytes(log)[3] ^= std::byte{1};
  more->bytes(log)[kLogBlockBytes + 1] = std::byte{1};
  EXPECT_TRUE(kept(*more)) << "something after a damaged header";
  auto foreign = files.copy();
  make_writer(*foreign, kSecond, given_up - 1, 1, 8, {1, 2, 3});
  LogStart start = *examine(*foreign, "/data", {"/data"});
  ASSERT_TRUE(store_cut(*foreign, "/data", start));
  ASSERT_TRUE(remove_at(*foreign, start));
  EXPECT_TRUE(*foreign->exists("/fast/node1/" + to_string(LogFileName{given_up - 1, 0, 0})));
}

TEST(Leftovers, OfTheRunningStartUpAreKept) {
  MemoryFileSystem files;
  fill_directory(files);
  LogStart start = next_start(files);
  make_writer(files, kSecond, start.incarnation, start.start_epoch, 8,
              start.savepoint.cluster_uuid);
  ASSERT_TRUE(remove_at(files, start));
  EXPECT_TRUE(*files.exists("/fast/node1/" + to_string(LogFileName{start.incarnation, 0, 0})));
}

/// Sorted runs and logs are removed even if a damaged pin keeps the snapshots.
TEST(Leftovers, GoThoughADamagedPinKeepsSnapshots) {
  MemoryFileSystem files;
  fill_directory(files);
  LogStart start = next_start(files);
  ASSERT_EQ(make_snapshot(files, "/data", start.savepoint, 5), "");
  ASSERT_TRUE(pin_snapshot(files, "/data", start.savepoint, 1, "damaged"));
  ASSERT_EQ(make_snapshot(files, "/data", start.savepoint, 6), "");
  ASSERT_EQ(give_up_a_start(files), "");
  files.bytes(snapshot_metadata_path("/data", 1))[40] ^= std::byte{1};
  start = next_start(files);
  EXPECT_FALSE(remove_at(files, start));
  EXPECT_TRUE(list_sorted_runs(files, "/data", 0)->empty());
  EXPECT_FALSE(*files.exists("/fast/node1/" + to_string(LogFileName{start.incarnation - 1, 0, 0})));
  EXPECT_TRUE(*files.exists(snapshot_metadata_path("/data", 3)));
}

TEST(Leftovers, AreRemovedWhateverChangeACrashInterrupts) {
  std::mt19937_64 random(seed());
  bool is_done = false;
  uint64_t changes = 0;
  for (; !is_done; ++changes) {
    PowerCutFileSystem disk;
    fill_directory(disk);
    for (int i = 0; i < 2; ++i) ASSERT_EQ(give_up_a_start(disk, false), "");
    LogStart start = next_start(disk);
    HookedFileSystem killed(disk, {}, changes);
    is_done = remove_at(killed, start).has_value();
    for (uint64_t cut = 0; cut < 4; ++cut) {
      auto image = disk.cut(random());
      LogStart after = next_start(*image);
      EXPECT_EQ(after.recovery_epoch, 9u);
      const auto removed = remove_at(*image, after);
      ASSERT_TRUE(removed) << changes << ": " << removed.error().message;
      if (is_done) {
        EXPECT_TRUE(removed->removed.empty()) << "what was removed is gone durably";
      }
      EXPECT_EQ(log_files_in(*image, kLeftoverDirectories)->size(), 4u) << "of the first one";
      EXPECT_TRUE(snapshot_files_in(*image, "/data", kLeftoverDirectories)->empty());
      EXPECT_EQ(give_up_a_start(*image), "");
    }
  }
  EXPECT_GT(changes, 15u);
}

}  // namespace
}  // namespace atolldb::test
