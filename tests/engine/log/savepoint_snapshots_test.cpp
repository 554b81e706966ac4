// Tests of the snapshots, pins and ids that a savepoint lists.
#include "engine/log/savepoint_snapshots.h"

#include <gtest/gtest.h>

#include <random>

#include "shared/base/pointer.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/engine/log/stored_savepoint.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

Savepoint with_incarnations(FileSystem& files) {
  Savepoint savepoint;
  savepoint.largest_incarnation = 4;
  savepoint.largest_epoch = 40;
  savepoint.incarnations = {{1, 1, 10, {}}, {2, 11, 20, {}}, {4, 31, {}, {}}};
  CHECK(write_savepoint(files, "/data", savepoint).has_value());
  return savepoint;
}

TEST(SavepointSnapshots, NeverGivesAnIdTwiceWhateverChangeACrashInterrupts) {
  std::mt19937_64 random(seed());
  for (uint64_t changes = 0; changes < 12; ++changes) {
    PowerCutFileSystem disk;
    Savepoint savepoint = with_incarnations(disk);
    HookedFileSystem killed(disk, {}, changes);
    uint32_t given = 0;
    for (;;) {
      auto id = take_snapshot_id(killed, "/data", savepoint);
      if (!id) break;
      EXPECT_EQ(*id, given + 1);
      given = *id;
    }
    for (uint64_t cut = 0; cut < 10; ++cut) {
      auto image = disk.cut(random());
      Savepoint after = stored_savepoint(*image);
      auto id = take_snapshot_id(*image, "/data", after);
      ASSERT_TRUE(id);
      EXPECT_GT(*id, given);
    }
  }
}

TEST(SavepointSnapshots, NamesTheNewestCheckpointAndTheEpochThatItNeedsDurable) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  savepoint.scheme = DurabilityScheme::silor;
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  // A checkpoint of the start-up's own: all its epochs are before the running incarnation.
  ASSERT_TRUE(store_checkpoint(files, "/data", savepoint, 1, 12, 20));
  EXPECT_EQ(savepoint.snapshot, 1u);
  EXPECT_EQ(savepoint.snapshot_epoch, 11u);
  EXPECT_EQ(savepoint.durable_epoch, 0u);
  EXPECT_EQ(savepoint.incarnations.front().number, 2u);
  EXPECT_EQ(savepoint.covered_incarnation, 1u);
  ASSERT_TRUE(store_checkpoint(files, "/data", savepoint, 2, 33, 35));
  EXPECT_EQ(savepoint.snapshot_epoch, 32u);
  EXPECT_EQ(savepoint.durable_epoch, 35u);
  EXPECT_TRUE(savepoint.kept.empty());
  EXPECT_EQ(savepoint.incarnations.size(), 1u);
  EXPECT_EQ(stored_savepoint(files), savepoint);
}

TEST(SavepointSnapshots, HasNoIdsLeftAtTheEnd) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  savepoint.largest_snapshot = SnapshotPointer::kMaxSnapshot - 1;
  auto id = take_snapshot_id(files, "/data", savepoint);
  ASSERT_TRUE(id);
  EXPECT_EQ(*id, SnapshotPointer::kMaxSnapshot);
  id = take_snapshot_id(files, "/data", savepoint);
  ASSERT_FALSE(id);
  EXPECT_EQ(id.error().code, ExitCode::resources);
  EXPECT_NE(id.error().message.find("16777215"), std::string::npos);
}

TEST(SavepointSnapshots, HasTheOldSnapshotOrTheNewOneWhateverChangeACrashInterrupts) {
  std::mt19937_64 random(seed());
  bool is_done = false;
  for (uint64_t changes = 0; !is_done; ++changes) {
    PowerCutFileSystem disk;
    Savepoint savepoint = with_incarnations(disk);
    ASSERT_TRUE(take_snapshot_id(disk, "/data", savepoint));
    ASSERT_TRUE(store_snapshot(disk, "/data", savepoint, 1, 12));
    ASSERT_TRUE(take_snapshot_id(disk, "/data", savepoint));
    const Savepoint before = savepoint;
    HookedFileSystem killed(disk, {}, changes);
    is_done = store_snapshot(killed, "/data", savepoint, 2, 20).has_value();
    EXPECT_EQ(savepoint == before, !is_done) << "the caller's copy changes with the file only";
    for (uint64_t cut = 0; cut < 10; ++cut) {
      const Savepoint after = stored_savepoint(*disk.cut(random()));
      if (after.snapshot == 1) {
        EXPECT_FALSE(is_done);
        EXPECT_EQ(after, before);
      } else {
        EXPECT_EQ(after.snapshot, 2u);
        EXPECT_EQ(after.snapshot_epoch, 20u);
      }
    }
  }
}

TEST(SavepointSnapshots, KeepsIncarnationsThatTheSnapshotDoesNotCover) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  const auto store = [&](uint64_t epoch) {
    auto id = take_snapshot_id(files, "/data", savepoint);
    ASSERT_TRUE(id && store_snapshot(files, "/data", savepoint, *id, epoch));
    EXPECT_EQ(stored_savepoint(files), savepoint);
  };
  store(9);
  EXPECT_EQ(savepoint.incarnations.size(), 3u);
  EXPECT_EQ(savepoint.covered_incarnation, 0u);
  store(19);
  EXPECT_EQ(savepoint.incarnations.size(), 2u);
  EXPECT_EQ(savepoint.covered_incarnation, 1u);
  store(35);
  ASSERT_EQ(savepoint.incarnations.size(), 1u) << "the one that runs stays";
  EXPECT_EQ(savepoint.incarnations[0].number, 4u);
  EXPECT_EQ(savepoint.covered_incarnation, 2u);
}

TEST(SavepointSnapshots, DoesNotGrowWithTheNumberOfStarts) {
  MemoryFileSystem files;
  Savepoint savepoint;
  const std::vector<LoggerPlace> loggers(100, LoggerPlace{0, 0, std::string(1000, 'x')});
  for (uint64_t number = 1; number <= 300; ++number) {
    if (auto* last = savepoint.incarnations.empty() ? nullptr : &savepoint.incarnations.back()) {
      last->cut_epoch = last->start_epoch + 5;
      auto id = take_snapshot_id(files, "/data", savepoint);
      ASSERT_TRUE(id) << id.error().message;
      ASSERT_TRUE(store_snapshot(files, "/data", savepoint, *id, number * 10));
    }
    savepoint.largest_incarnation = number;
    savepoint.incarnations.push_back({number, number * 10 + 1, {}, loggers});
    auto written = write_savepoint(files, "/data", savepoint);
    ASSERT_TRUE(written) << number << ": " << written.error().message;
  }
  EXPECT_EQ(savepoint.incarnations.size(), 1u);
}

TEST(SavepointSnapshots, PinsAKeptSnapshotAndNamesEveryKindThatCanBePinned) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  for (uint32_t id = 1; id <= 3; ++id) {
    ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
    ASSERT_TRUE(store_snapshot(files, "/data", savepoint, id, 10 + id, 2));
  }
  ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 2, "kept"));
  EXPECT_EQ(savepoint.pinned.back(), (PinnedSnapshot{2, 12, "kept"}));
  const auto pinned = pin_snapshot(files, "/data", savepoint, 1, "deleted");
  ASSERT_FALSE(pinned);
  EXPECT_NE(pinned.error().message.find(
                "is neither the newest one of /data, which is 3, nor kept, nor pinned"),
            std::string::npos)
      << pinned.error().message;
}

TEST(SavepointSnapshots, GivesUpThePinsOfBackupsInBothSlots) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 1, 5));
  ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 1, "of a user"));
  EXPECT_EQ(*give_up_backup_pins(files, "/data", savepoint), 0u);
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 1, std::string(kBackupPinPrefix) + name));
  }
  const auto removed = give_up_backup_pins(files, "/data", savepoint);
  ASSERT_TRUE(removed) << removed.error().message;
  EXPECT_EQ(*removed, 2u);
  const auto slots = read_savepoint_slots(files, savepoint_path("/data"));
  ASSERT_TRUE(slots);
  for (const SavepointSlot& slot : *slots) {
    ASSERT_TRUE(slot.savepoint);
    EXPECT_EQ(slot.savepoint->pinned, (std::vector<PinnedSnapshot>{{1, 5, "of a user"}}));
  }
}

TEST(SavepointSnapshots, PinsWhatExistsUnderNamesThatTellThemApart) {
  MemoryFileSystem files;
  Savepoint savepoint = with_incarnations(files);
  const auto expect_refused = [&](uint32_t id, const std::string& name, ExitCode code,
                                  const std::string& words) {
    const Savepoint before = savepoint;
    auto pinned = pin_snapshot(files, "/data", savepoint, id, name);
    ASSERT_FALSE(pinned);
    EXPECT_EQ(pinned.error().code, code);
    EXPECT_NE(pinned.error().message.find(words), std::string::npos) << pinned.error().message;
    EXPECT_EQ(savepoint, before);
  };
  expect_refused(0, "none", ExitCode::failed, "snapshot 0");
  ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  expect_refused(1, "not finished", ExitCode::failed, "snapshot 1");
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 1, 5));
  ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 1, "monday"));
  ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  ASSERT_TRUE(take_snapshot_id(files, "/data", savepoint));
  ASSERT_TRUE(store_snapshot(files, "/data", savepoint, 3, 9));
  expect_refused(2, "failed", ExitCode::failed, "snapshot 2");
  expect_refused(3, "monday", ExitCode::failed, "monday");
  expect_refused(3, "", ExitCode::failed, "0 bytes");
  expect_refused(3, std::string(256, 'x'), ExitCode::failed, "256 bytes");
  ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 1, "again")) << "it is kept anyway";
  EXPECT_EQ(stored_savepoint(files).pinned,
            (std::vector<PinnedSnapshot>{{1, 5, "monday"}, {1, 5, "again"}}));
  for (uint32_t i = 2; i < kMaxPinnedSnapshots; ++i) {
    ASSERT_TRUE(pin_snapshot(files, "/data", savepoint, 3, std::to_string(i)));
  }
  expect_refused(3, "more", ExitCode::resources, "64");
  ASSERT_TRUE(unpin_snapshot(files, "/data", savepoint, "monday"));
  ASSERT_FALSE(unpin_snapshot(files, "/data", savepoint, "monday"));
  EXPECT_EQ(stored_savepoint(files), savepoint);
  EXPECT_EQ(savepoint.pinned.size(), kMaxPinnedSnapshots - 1);
  // The last pin has the id and epoch of snapshot 3, not those of another snapshot.
  EXPECT_EQ(savepoint.pinned.back(), (PinnedSnapshot{3, 9, "63"}));
}

}  // namespace
}  // namespace atolldb::test
