// Tests of a start-up: cuts, corruption, snapshots, incarnations, and other clusters' logs.
#include "engine/recovery/log_start.h"

#include <gtest/gtest.h>

#include "engine/log/log_files.h"
#include "engine/recovery/discard_data.h"
#include "engine/recovery/salvage.h"
#include "tests/engine/log/log_rules.h"
#include "tests/engine/recovery/device_rules.h"
#include "tests/engine/snapshot/made_snapshot.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kLate = (uint64_t{1} << 32) + 1000;

const std::string kFirstFile = "/data/node0/log_1_0_000000.atlog";
const std::string kSecondFile = "/fast/node1/log_1_0_000000.atlog";

/// Expects a start-up to fail with a corruption error that names `place`.
void expect_corruption(FileSystem& files, const std::string& place) {
  auto start = examine(files, "/data");
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ExitCode::corruption) << start.error().message;
  EXPECT_NE(start.error().message.find(place), std::string::npos) << start.error().message;
}

TEST(LogStart, BeginsFromNothing) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  EXPECT_TRUE(data.start.is_new);
  EXPECT_EQ(data.start.incarnation, 1u);
  EXPECT_EQ(data.start.start_epoch, 1u);
  auto next = examine(data.files, "/data");
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(next->is_new);
  EXPECT_TRUE(next->streams_to_read.empty());
  EXPECT_EQ(next->recovery_epoch, 0u);
  EXPECT_EQ(next->savepoint.incarnations.back().cut_epoch, 0u) << "no marker: start - 1";
  EXPECT_EQ(next->savepoint.cluster_uuid, data.start.savepoint.cluster_uuid);
  EXPECT_EQ(next->incarnation, 2u);
}

TEST(LogStart, CutsAtTheSlowestLogger) {
  EXPECT_EQ(the_slowest_logger_sets_the_cut(), "");
  EXPECT_EQ(missing_durable_blocks_are_corruption(), "");
}

TEST(LogStart, RefusesRecordsOfStoragesThatNoDdlRecordCreates) {
  EXPECT_EQ(records_of_uncreated_storages_are_corruption(), "");
}

TEST(LogStart, RefusesRecordsOfUncreatedStoragesEvenInALogThatASalvageCuts) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  data.write_all(1, 3);
  data.files.bytes(kFirstFile)[6 * kLogBlockBytes + 20] ^= std::byte{1};  // the marker of epoch 2
  const auto start = examine(data.files, "/data", {}, Damage::left_out);
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->savepoint.incarnations.back().cut_epoch, 1u);
  ASSERT_TRUE(data.files.remove("/data/coordinator/ddl_000000.atlog"));
  const auto refused = examine(data.files, "/data", {}, Damage::left_out);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption) << refused.error().message;
  EXPECT_TRUE(refused.error().message.contains("none of the 0 records of the DDL log"))
      << refused.error().message;
}

TEST(LogStart, CallsAFileThatWasCutShortCorruptionWhateverIsKnownToBeDurable) {
  for (uint64_t blocks = 0; blocks <= 64; ++blocks) {
    DataDirectory data;
    ASSERT_EQ(data.begin({kFirst}, 64), "");
    data.write_all(1, 3);
    data.files.bytes(kFirstFile).resize(blocks * kLogBlockBytes);
    const auto start = examine(data.files, "/data");
    // Nothing is missing if the file is cut after the end of the log.
    EXPECT_EQ(start.has_value(), blocks > 10) << blocks;
    if (start) continue;
    EXPECT_EQ(start.error().code, ExitCode::corruption) << start.error().message;
  }
}

TEST(LogStart, ReadsWhatTheDeviceHasAfterASyncThatFailed) {
  EXPECT_EQ(a_start_reads_what_the_device_has(), "");
}

TEST(LogStart, LeavesRecordsOfAnUncreatedStorageAloneAboveTheCut) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 2);
  // Only one logger has closed epoch 3, so the epoch is above the cut. Its record of a storage that
  // was never created does not count.
  BlockBuffer buffer(1);
  begin_block(buffer.all()[0], 3, 0);
  const std::array key = {std::byte{1}};
  ASSERT_TRUE(
      add_record(buffer.all()[0], LogType::insert, kStorages + 1, uint64_t{3} << 28, key, key));
  ASSERT_TRUE(data.writers[0].append(std::array{buffer.all()}, 2));
  ASSERT_TRUE(data.writers[0].close_epoch(3, 2));
  EXPECT_TRUE(examine(data.files, "/data"));
  // When both loggers have closed epoch 3, it counts. Its record belongs to a storage that no DDL
  // record creates, which is corruption.
  ASSERT_TRUE(data.writers[1].close_epoch(3, 2));
  expect_corruption(data.files, "a record of storage 10, which none of the 9 records");
}

TEST(LogStart, RefusesASnapshotOfAStorageThatNoDdlRecordCreates) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}), "");
  ASSERT_EQ(make_snapshot(data.files, "/data", data.start.savepoint, 0), "");
  EXPECT_TRUE(examine(data.files, "/data"));
  ASSERT_TRUE(data.files.remove("/data/coordinator/ddl_000000.atlog"));
  expect_corruption(data.files, "snapshot_1.meta: holds storage 1 (accounts)");
}

/// Returns "incarnation/node up to last epoch" for all streams.
std::vector<std::string> streams(const LogStart& start) {
  std::vector<std::string> all;
  for (const PlannedStream& planned : start.streams_to_read) {
    all.push_back(std::to_string(planned.stream.incarnation) + "/" +
                  std::to_string(planned.stream.node) + " up to " +
                  std::to_string(planned.last_epoch));
  }
  return all;
}

TEST(LogStart, NamesTheStreamsThatHoldCommitsAndTheEpochTheyReach) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 2);
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(streams(*start), (std::vector<std::string>{"1/0 up to 2", "1/1 up to 2"}));
  EXPECT_EQ(start->recovery_epoch, 2u);
  // Streams of a finished incarnation are included. An incarnation without commits has no streams.
  ASSERT_EQ(data.begin({kFirst}), "");
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  const uint64_t epoch = data.start.start_epoch;
  data.write_all(epoch, epoch);
  start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  const std::string last = " up to " + std::to_string(epoch);
  EXPECT_EQ(streams(*start),
            (std::vector<std::string>{"1/0 up to 2", "1/1 up to 2", "3/0" + last, "3/1" + last}));
  EXPECT_EQ(start->recovery_epoch, epoch);
}

TEST(LogStart, ReadsTheLogThatTheSnapshotLacksAndNoMore) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  data.write_all(1, 5);
  Savepoint& savepoint = data.start.savepoint;
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 3), "");
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(start->snapshot);
  EXPECT_EQ(start->snapshot->id, 1u);
  EXPECT_EQ(streams(*start), (std::vector<std::string>{"1/0 up to 5", "1/1 up to 5"}));
  for (const PlannedStream& planned : start->streams_to_read) {
    EXPECT_EQ(planned.stream.covered_epoch, 3u);
  }
  ASSERT_EQ(make_snapshot(data.files, "/data", savepoint, 5), "");
  start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->snapshot->id, 2u);
  EXPECT_EQ(streams(*start), (std::vector<std::string>{}));
  EXPECT_EQ(start->recovery_epoch, 5u);
  // Blocks that the snapshot covers are skipped, even if they are damaged.
  auto damaged = data.files.copy();
  damaged->bytes(kFirstFile)[13 * kLogBlockBytes + 70] ^= std::byte{1};
  EXPECT_TRUE(examine(*damaged, "/data"));
  // The snapshot shows that epoch 5 was durable, so the marker of epoch 5 must exist.
  damaged = data.files.copy();
  damaged->bytes(kFirstFile)[15 * kLogBlockBytes + 20] ^= std::byte{1};
  expect_corruption(*damaged, kFirstFile + ": offset " + std::to_string(15 * kLogBlockBytes));
}

TEST(LogStart, ForgetsIncarnationsThatASnapshotCoversAndNeedsNoFilesOfThem) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 3);
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start && store_cut(data.files, "/data", *start));
  EXPECT_EQ(start->recovery_epoch, 3u);
  // Recovery takes a snapshot, and then the cluster crashes.
  ASSERT_EQ(make_snapshot(data.files, "/data", start->savepoint, start->recovery_epoch), "");
  EXPECT_TRUE(start->savepoint.incarnations.empty());
  EXPECT_EQ(start->savepoint.covered_incarnation, 1u);
  auto next = examine(data.files, "/data", {"/fast"});  // files of incarnation 1 still exist
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->recovery_epoch, 3u);
  EXPECT_TRUE(next->streams_to_read.empty());
  EXPECT_GT(next->start_epoch, 3u);
  EXPECT_EQ(next->incarnation, 3u) << "2 was taken by the start that crashed";
  ASSERT_TRUE(data.files.remove(kFirstFile));
  EXPECT_TRUE(examine(data.files, "/data", {"/fast"}));
  // The files of the next incarnation are checked as usual.
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(data.start.start_epoch, data.start.start_epoch + 1);
  next = examine(data.files, "/data");
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_EQ(next->streams_to_read.size(), 2u);
  EXPECT_EQ(next->savepoint.incarnations.size(), 1u);
}

TEST(LogStart, TakesAMissingFirstFileForADeletedOneOnlyIfTheSnapshotCoversAllOfIt) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}, 8), "");
  // File 0 has 8 blocks: the header, two record blocks and the marker of epoch 1, the same for
  // epoch 2, and one record block of epoch 3.
  data.write_all(1, 9);
  const std::string second = "/data/node0/log_1_0_000001.atlog";
  expect_corruption(
      *[&] {
        auto image = data.files.copy();
        EXPECT_TRUE(image->remove(kFirstFile));
        return image;
      }(),
      kFirstFile);
  for (uint64_t epoch = 1; epoch <= 4; ++epoch) {
    auto image = data.files.copy();
    Savepoint savepoint = data.start.savepoint;
    ASSERT_EQ(make_snapshot(*image, "/data", savepoint, epoch), "");
    ASSERT_TRUE(examine(*image, "/data")) << epoch;
    ASSERT_TRUE(image->remove(kFirstFile));
    if (epoch < 3) {  // a block of epoch 3 precedes the second file, whose header names epoch 2
      expect_corruption(*image, second + ": offset 0");
      continue;
    }
    auto start = examine(*image, "/data");
    ASSERT_TRUE(start) << epoch << ": " << start.error().message;
    EXPECT_EQ(start->recovery_epoch, 9u);
    EXPECT_EQ(streams(*start), (std::vector<std::string>{"1/0 up to 9"}));
    // A file between other files must not be missing.
    ASSERT_TRUE(image->remove("/data/node0/log_1_0_000002.atlog"));
    expect_corruption(*image, "/data/node0/log_1_0_000002.atlog");
  }
}

TEST(LogStart, RefusesASnapshotThatIsNotAllThereAndNamesTheFile) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 3);
  ASSERT_EQ(make_snapshot(data.files, "/data", data.start.savepoint, 2), "");
  ASSERT_TRUE(examine(data.files, "/data"));
  for (const char* name : {"coordinator/snapshot_1.meta", "coordinator/snapshot_1.atsnap",
                           "node0/snapshot_1.atsnap"}) {
    const std::string path = std::string("/data/") + name;
    auto image = data.files.copy();
    ASSERT_TRUE(image->remove(path));
    expect_corruption(*image, path);
    image = data.files.copy();
    image->bytes(path).resize(image->bytes(path).size() - kIoBlockBytes);
    expect_corruption(*image, path);
  }
  // The metadata has another epoch than the savepoint names.
  ASSERT_EQ(make_snapshot_files(data.files, "/data", data.start.savepoint.cluster_uuid, 1, 1), "");
  expect_corruption(data.files, "/data/coordinator/snapshot_1.meta: is of epoch 1");
  ASSERT_EQ(make_snapshot_files(data.files, "/data", {5}, 1, 2), "");
  expect_corruption(data.files, "/data/coordinator/snapshot_1.meta: is of another cluster");
}

TEST(LogStart, DoesNotCountRecordsAboveTheCutAsCommits) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write(0, 1);  // the other logger has closed no epoch
  for (int crash = 0; crash < 3; ++crash) {
    auto start = examine(data.files, "/data");
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_TRUE(start->streams_to_read.empty());
    EXPECT_GE(start->start_epoch, 2u) << "but their epoch was seen";
    ASSERT_EQ(data.begin({kFirst}), "");
  }
}

TEST(LogStart, CallsAMissingFileOrDirectoryCorruption) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  auto before = data.files.copy();
  ASSERT_TRUE(before->remove(kSecondFile));  // now the directory of the second logger is empty
  expect_corruption(*before, kSecondFile);

  data.write_all(1, 9);  // several files per logger
  ASSERT_TRUE(data.files.remove("/fast/node1/log_1_0_000001.atlog"));
  expect_corruption(data.files, "/fast/node1/log_1_0_000001.atlog: offset 0");
}

TEST(LogStart, TellsATornTailFromCorruption) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  data.write_all(1, 3);  // 10 blocks each; the second log's epoch 3 names epoch 2 as durable
  const auto damage = [&](uint64_t block) {
    auto image = data.files.copy();
    image->bytes(kFirstFile)[block * kLogBlockBytes + 20] ^= std::byte{1};
    return image;
  };
  for (uint64_t block = 0; block <= 6; ++block) {
    expect_corruption(*damage(block),
                      kFirstFile + ": offset " + std::to_string(block * kLogBlockBytes));
  }
  for (uint64_t block = 7; block <= 9; ++block) {
    auto start = examine(*damage(block), "/data");
    ASSERT_TRUE(start) << start.error().message;
    EXPECT_EQ(start->savepoint.incarnations.back().cut_epoch, 2u) << block;
  }
  // An orderly stop has stored that epoch 3 is durable, too.
  ASSERT_TRUE(store_durable_epoch(data.files, "/data", data.start, 3));
  EXPECT_TRUE(examine(data.files, "/data"));
  expect_corruption(*damage(7), kFirstFile);
}

TEST(LogStart, CountsBlocksUpToTheCutOfTheirIncarnation) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  data.write_all(1, 3);
  data.write(0, 4);
  ASSERT_EQ(data.begin({kFirst, kSecond, {0, 1, "/data"}}, 64), "");  // stores the cut, which is 3
  const uint64_t epoch = data.start.start_epoch;
  data.write_all(epoch, epoch + 2);
  // Blocks above a stored cut are not checked. Below the cut every block counts.
  data.files.bytes(kFirstFile)[11 * kLogBlockBytes + 70] ^= std::byte{1};
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->savepoint.incarnations.at(0).cut_epoch, 3u);
  EXPECT_EQ(start->savepoint.incarnations.at(1).cut_epoch, epoch + 2);
  auto scan = scan_incarnation(data.files, start->savepoint, start->savepoint.incarnations.at(0));
  ASSERT_TRUE(scan);
  EXPECT_FALSE(scan->corruption);
  data.files.bytes(kFirstFile)[8 * kLogBlockBytes + 70] ^= std::byte{1};
  scan = scan_incarnation(data.files, start->savepoint, start->savepoint.incarnations.at(0));
  ASSERT_TRUE(scan);
  ASSERT_TRUE(scan->corruption);
  EXPECT_EQ(scan->corruption->offset, 8 * kLogBlockBytes);
}

TEST(LogStart, StartsAboveEveryEpochSeenAnywhere) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}, 64), "");
  data.write_all(kLate, kLate + 1);
  data.write(0, kLate + 50);
  data.write(0, kLate + 60);
  // Damage above the cut does not change that the start epoch is above every epoch seen.
  data.files.bytes(kFirstFile)[7 * kLogBlockBytes + 70] ^= std::byte{1};
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start) << start.error().message;
  EXPECT_EQ(start->savepoint.incarnations.back().cut_epoch, kLate + 1);
  EXPECT_EQ(start->start_epoch, kLate + 61);
  // More start-ups after crashes: with other loggers, and one before anything was written.
  ASSERT_EQ(data.begin({kSecond}), "");
  data.write_all(kLate + 70, kLate + 70);
  ASSERT_EQ(data.begin({kFirst, kSecond, {2, 0, "/fast"}}), "");
  ASSERT_EQ(data.begin({kFirst}), "");
  EXPECT_GT(data.start.start_epoch, kLate + 70);
  EXPECT_EQ(data.start.incarnation, 4u);
}

TEST(LogStart, NeverGivesANumberTwice) {
  DataDirectory data;
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start && store_cut(data.files, "/data", *start));
  make_writer(data.files, kFirst, start->incarnation, start->start_epoch, 8,
              start->savepoint.cluster_uuid);
  // A crash at this point leaves the file, and no savepoint lists it.
  ASSERT_EQ(data.begin({kFirst}), "");
  EXPECT_EQ(data.start.incarnation, 2u);
}

TEST(LogStart, ForgetsIncarnationsWithoutCommitsSoThatStartsAloneFillNothing) {
  DataDirectory data;
  for (uint64_t number = 1; number <= 100; ++number) {
    ASSERT_EQ(data.begin({kFirst, kSecond}), "");
    ASSERT_EQ(data.start.savepoint.incarnations.size(), 1u);
    ASSERT_EQ(data.start.savepoint.covered_incarnation, number - 1);
    // Some incarnations have markers without records, and some have records above the cut. Neither
    // are commits.
    if (number % 3 == 0) {
      for (LogWriter& writer : data.writers) {
        ASSERT_TRUE(writer.close_epoch(data.start.start_epoch, data.start.start_epoch - 1));
      }
    }
    if (number % 7 == 0) data.write(0, data.start.start_epoch + 1);
  }
  // An incarnation with commits stays listed until a snapshot covers them.
  const uint64_t epoch = data.start.start_epoch;
  data.write_all(epoch, epoch);
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  EXPECT_EQ(data.start.savepoint.covered_incarnation, 99u);
  EXPECT_EQ(streams(data.start),
            (std::vector<std::string>{"100/0 up to " + std::to_string(epoch),
                                      "100/1 up to " + std::to_string(epoch)}));
}

TEST(LogStart, StartsFromASavepointThatIsFull) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  // Makes a full list of incarnations. None of them has closed an epoch.
  Savepoint full = data.start.savepoint;
  full.incarnations.clear();
  const std::vector<LoggerPlace> loggers = {kFirst, kSecond};
  while (full.incarnations.size() < 37'000) {
    const uint64_t number = full.incarnations.size() + 2;
    full.incarnations.push_back({number, 1, 0, loggers});
    full.largest_incarnation = number;
  }
  while (write_savepoint(data.files, "/data", full)) {
    for (int i = 0; i < 10; ++i) {
      full.incarnations.push_back({++full.largest_incarnation, 1, 0, loggers});
    }
  }
  full.incarnations.resize(full.incarnations.size() - 10);
  full.covered_incarnation = 1;
  ASSERT_TRUE(write_savepoint(data.files, "/data", full));
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  EXPECT_EQ(data.start.savepoint.incarnations.size(), 1u);
}

TEST(LogStart, ListsOnlyLoggersThatHaveBegun) {
  DataDirectory data;
  auto start = examine(data.files, "/data");
  ASSERT_TRUE(start && store_cut(data.files, "/data", *start));
  auto begun = begin_incarnation(data.files, "/data", *start, {kFirst});
  ASSERT_FALSE(begun);
  EXPECT_NE(begun.error().message.find(kFirstFile), std::string::npos);
}

TEST(LogStart, NoticesThatASavepointIsMissingOrTooOld) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 1);
  auto without = data.files.copy();
  ASSERT_TRUE(without->remove("/data/coordinator/savepoint"));
  expect_corruption(*without, kFirstFile);
  // The slot that lists the incarnation is damaged. The older slot must not hide the incarnation's
  // commits.
  data.files.bytes("/data/coordinator/savepoint")[40] ^= std::byte{1};
  expect_corruption(data.files, kFirstFile);
}

/// Writes another cluster's log into the directory of this cluster's second logger.
void add_foreign_logs(DataDirectory& data, const ClusterUuid& other) {
  EXPECT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 3);
  LogWriter foreign = make_writer(data.files, kSecond, 77, 1, 8, other);
  write_epoch(foreign, 1, 2, 0, data.random);
}

TEST(LogStart, CallsAnotherClustersLogThatAndNotCorruptionNorDoesItSuggestADiscard) {
  DataDirectory data;
  add_foreign_logs(data, {1, 1, 1});
  auto start = examine(data.files, "/data");
  ASSERT_FALSE(start);
  EXPECT_EQ(start.error().code, ExitCode::failed) << start.error().message;
  EXPECT_NE(start.error().message.find("/fast/node1/log_77_0_000000.atlog"), std::string::npos);
  EXPECT_EQ(start.error().message.find("discard"), std::string::npos) << start.error().message;
  // A log of this cluster that no savepoint lists is still corruption.
  DataDirectory own;
  ASSERT_EQ(own.begin({kFirst, kSecond}), "");
  LogWriter unlisted = make_writer(own.files, kSecond, 77, 1, 8, own.start.savepoint.cluster_uuid);
  write_epoch(unlisted, 1, 2, 0, own.random);
  expect_corruption(own.files, "/fast/node1/log_77_0_000000.atlog");
}

TEST(DiscardData, LeavesTheLogsOfOtherClustersWhereTheyAreWhateverInterruptsIt) {
  const std::string foreign = "/fast/node1/log_77_0_000000.atlog";
  for (uint64_t works = 0;; ++works) {
    DataDirectory data;
    add_foreign_logs(data, {1, 1, 1});
    const MemoryFileSystem::Bytes before = data.files.bytes(foreign);
    data.files.changes_left = works;
    auto moved = discard_data(data.files, "/data", {"/fast"});
    data.files.changes_left = UINT64_MAX;
    const bool is_whole = moved.has_value();
    // When the savepoint has been moved, only the last syncs are missing.
    const bool is_moved = *data.files.exists("/data/discarded-0/coordinator/savepoint");
    if (!is_moved) {
      moved = discard_data(data.files, "/data", {"/fast"});
      ASSERT_TRUE(moved) << moved.error().message;
    }
    EXPECT_EQ(data.files.bytes(foreign), before);
    for (const std::string& path : data.files.paths()) {
      if (path == foreign || path == "/data/directories") continue;
      EXPECT_NE(path.find("/discarded-0/"), std::string::npos) << path;
    }
    if (is_whole) break;
  }
}

TEST(DiscardData, MovesEverythingAsideWhateverInterruptsIt) {
  for (uint64_t works = 0;; ++works) {
    DataDirectory data;
    ASSERT_EQ(data.begin({kFirst, kSecond}), "");
    data.write_all(1, 9);
    auto ddl = DdlLog::open(data.files, "/data", data.start.savepoint.cluster_uuid);
    ASSERT_TRUE(ddl &&
                ddl->append({DdlOperation::drop_storage, 1, 1, "", StorageType::none, 0, 0}));
    ASSERT_EQ(make_snapshot(data.files, "/data", data.start.savepoint, 2), "");
    const size_t files = data.files.paths().size();

    data.files.changes_left = works;
    auto moved = discard_data(data.files, "/data");
    data.files.changes_left = UINT64_MAX;
    const bool is_whole = moved.has_value();
    if (!is_whole) {
      auto start = examine(data.files, "/data");
      if (!start) {
        EXPECT_NE(start.error().message.find("--discard-data"), std::string::npos);
      }
      moved = discard_data(data.files, "/data");
    }
    ASSERT_TRUE(moved) << moved.error().message;
    EXPECT_EQ(data.files.paths().size(), files + 1) << "the table of directories is there twice";
    for (const std::string& path : data.files.paths()) {
      if (path == "/data/directories") continue;
      EXPECT_NE(path.find("/discarded-0/"), std::string::npos) << path;
    }
    EXPECT_EQ(data.begin({kFirst, kSecond}), "");
    EXPECT_TRUE(data.start.is_new);
    // The old data is complete in its new place, for the tools.
    auto old = read_savepoint(data.files, "/data/discarded-0");
    ASSERT_TRUE(old && *old);
    for (const LoggerPlace& place : (*old)->savepoint.incarnations.back().loggers) {
      EXPECT_TRUE(place.directory.ends_with("/discarded-0")) << place.directory;
    }
    auto again = discard_data(data.files, "/data");
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, (std::vector<std::string>{"/data/discarded-1", "/fast/discarded-1"}));
    if (is_whole) {
      EXPECT_GT(works, 10u);
      break;
    }
  }
}

TEST(DiscardData, MovesMetadataThatLiesInTheFolderOfANode) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  data.write_all(1, 9);
  const std::string stray = kFirst.directory + "/node0/";
  for (const char* name : {"snapshot_7.meta", "snapshot_8.meta.new"}) {
    ASSERT_TRUE(data.files.create(stray + name, kIoBlockBytes));
  }
  const auto moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved) << moved.error().message;
  for (const char* name : {"snapshot_7.meta", "snapshot_8.meta.new"}) {
    EXPECT_FALSE(*data.files.exists(stray + name));
    EXPECT_TRUE(*data.files.exists(kFirst.directory + "/discarded-0/node0/" + name));
  }
}

TEST(DiscardData, EndsASalvageWhateverInterruptsIt) {
  for (uint64_t works = 0;; ++works) {
    DataDirectory data;
    ASSERT_EQ(data.begin({kFirst, kSecond}), "");
    data.write_all(1, 9);
    ASSERT_TRUE(begin_salvage(data.files, "/data"));
    data.files.changes_left = works;
    const bool is_whole = discard_data(data.files, "/data").has_value();
    data.files.changes_left = UINT64_MAX;
    const auto moved = discard_data(data.files, "/data");
    ASSERT_TRUE(moved) << moved.error().message;
    const auto salvage = find_salvage(data.files, "/data");
    ASSERT_TRUE(salvage) << salvage.error().message;
    EXPECT_FALSE(*salvage) << "the empty database would be salvaged";
    // The salvage has put its copy of the savepoint into discarded-0, so the data moves to
    // discarded-1.
    EXPECT_TRUE(*data.files.exists("/data/discarded-1/coordinator/salvage_0"));
    if (is_whole) break;
  }
}

TEST(DiscardData, DoesNotCountASavepointThatWasNeverCompleted) {
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  ASSERT_TRUE(data.files.create("/data/coordinator/savepoint.new", kIoBlockBytes));
  auto moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->size(), 2u);
  moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_TRUE(moved->empty()) << "nothing was left to move";
  EXPECT_EQ(data.begin({kFirst, kSecond}), "");
}

TEST(DiscardData, DoesNothingWithoutDataAndWorksWithoutASavepoint) {
  DataDirectory data;
  auto moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved);
  EXPECT_TRUE(moved->empty());
  ASSERT_EQ(data.begin({kFirst, kSecond}), "");
  ASSERT_TRUE(data.files.remove("/data/coordinator/savepoint"));
  moved = discard_data(data.files, "/data", {"/fast"});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_EQ(moved->size(), 2u);
  EXPECT_EQ(data.begin({kFirst, kSecond}), "");
}

}  // namespace
}  // namespace atolldb::test
