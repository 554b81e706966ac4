// The archive of a data directory in memory: what is archived, what is kept, and what failures and
// power cuts leave behind.
#include "coordinator/archive/log_archiver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <sstream>
#include <thread>

#include <spdlog/sinks/ostream_sink.h>

#include "engine/archive/file_copy.h"
#include "engine/recovery/leftovers.h"
#include "engine/recovery/retention.h"
#include "shared/file/file_system.h"
#include "shared/file/io_buffer.h"
#include "tests/coordinator/archive/made_archive.h"
#include "tests/engine/log/hooked_file_system.h"
#include "tests/engine/snapshot/made_snapshot.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

using Paths = std::vector<std::string>;

Paths log_files(MemoryFileSystem& files, const std::string& directory) {
  Paths found;
  for (const std::string& path : files.paths()) {
    if (path.starts_with(directory + "/node") && path.contains("/log_")) found.push_back(path);
  }
  return found;
}

class LogArchiverTest : public testing::Test {
 protected:
  LogArchiverTest() {
    std::printf("seed: none, nothing here is random\n");
    EXPECT_TRUE(files().make_directory(kArchive));
    EXPECT_EQ(data_.begin({kFirst, kSecond}), "");
  }

  MemoryFileSystem& files() { return data_.files; }
  Savepoint& savepoint() { return data_.start.savepoint; }
  std::unique_ptr<ArchiveRun> run(const Config& config = archive_config()) {
    return std::make_unique<ArchiveRun>(files(), savepoint(), config);
  }
  ArchiveContent content() {
    auto read = read_archive(files(), kArchive);
    EXPECT_TRUE(read) << read.error().message;
    return read ? *std::move(read) : ArchiveContent{};
  }
  /// Starts the next incarnation of the cluster.
  void restart() { ASSERT_EQ(data_.begin({kFirst, kSecond}), ""); }

  DataDirectory data_;
};

TEST_F(LogArchiverTest, ArchivesClosedFilesOnlyAndRecordsHowFarTheyReach) {
  EXPECT_EQ(only_closed_files_are_archived(), "");
  const auto archive = run();
  data_.write_all(1, 12);
  ASSERT_EQ(archive->work(), "");
  const ArchiveContent found = content();
  const Paths of_cluster = log_files(files(), "/data");
  const Paths of_archive = log_files(files(), kArchive);
  ASSERT_GT(of_cluster.size(), 2u);
  // The archive has all files of the two streams except the newest file of each.
  EXPECT_EQ(of_archive.size() + 2, of_cluster.size() + log_files(files(), "/fast").size());
  EXPECT_EQ(found.files.size(), of_archive.size());
  EXPECT_EQ(differing_file(files()), "");
  EXPECT_EQ(found.ddl.size(), kStorages);
  ASSERT_EQ(found.incarnations.size(), 1u);
  const ArchivedIncarnation& incarnation = found.incarnations.begin()->second;
  EXPECT_EQ(incarnation.loggers.size(), 2u);
  EXPECT_FALSE(incarnation.cut_epoch);
  // Both streams are archived up to their last closed file, so only the last epochs are missing.
  const uint64_t reached = archive->progress().state().archived_epoch;
  EXPECT_GT(reached, 8u);
  EXPECT_LT(reached, 12u);
  EXPECT_EQ(archive->archiver().status().at("epoch"), reached);
  EXPECT_EQ(archive->archiver().waiting_text(), "");
}

TEST_F(LogArchiverTest, AnEndedIncarnationIsArchivedWholeAfterTheNextStart) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  restart();
  archive = run();
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(archive->progress().state().archived_epoch, 5u);
  const ArchiveContent found = content();
  ASSERT_EQ(found.incarnations.size(), 2u);
  EXPECT_EQ(found.incarnations.begin()->second.cut_epoch, 5u);
  EXPECT_EQ(found.incarnations.rbegin()->second.base_epoch, 5u);
  // The state forgets the first incarnation, which is archived completely. So the state does not
  // grow.
  EXPECT_EQ(archive->progress().state().incarnations.size(), 1u);
}

TEST_F(LogArchiverTest, CopiesNothingTwice) {
  auto archive = run();
  data_.write_all(1, 9);
  ASSERT_EQ(archive->work(), "");
  const uint64_t records = content().records;
  archive = run();
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(content().records, records);
  EXPECT_EQ(archive->archiver().metrics().files.get(), 0u);
}

TEST_F(LogArchiverTest, ALostStateIsMadeFromTheRecords) {
  auto archive = run();
  data_.write_all(1, 9);
  ASSERT_EQ(archive->work(), "");
  const ArchiveState before = archive->progress().state();
  ASSERT_TRUE(files().remove(archive_state_path("/data")));
  archive = run();
  EXPECT_TRUE(archive->progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 0}}));
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(archive->progress().state(), before);
  EXPECT_EQ(archive->archiver().metrics().files.get(), 0u);
}

TEST_F(LogArchiverTest, DeletionWaitsForTheArchive) {
  ASSERT_TRUE(files().remove_directory(kArchive));
  const auto archive = run();
  data_.write_all(1, 9);
  ASSERT_EQ(make_snapshot(files(), "/data", savepoint(), 9), "");
  const Paths before = log_files(files(), "/data");
  const auto remove = [&] {
    const auto deleted = delete_unneeded(files(), "/data", savepoint(), {"/data", "/fast"}, {},
                                         std::nullopt, archive->keep_log());
    ASSERT_TRUE(deleted) << deleted.error().message;
  };
  EXPECT_EQ(archive->work(), "/archive: the directory of the archive is missing: make or mount it");
  remove();
  EXPECT_EQ(log_files(files(), "/data"), before);
  EXPECT_NE(archive->archiver().waiting_text(), "");
  ASSERT_TRUE(files().make_directory(kArchive));
  ASSERT_EQ(archive->work(), "");
  remove();
  EXPECT_EQ(log_files(files(), "/data").size(), 1u);
  EXPECT_EQ(log_files(files(), kArchive).size(), before.size() * 2 - 2);
}

TEST_F(LogArchiverTest, CoveredIncarnationsStayUntilTheyAreArchived) {
  ASSERT_TRUE(files().remove_directory(kArchive));
  auto archive = run();
  data_.write_all(1, 5);
  restart();
  archive = run();
  ASSERT_EQ(make_snapshot(files(), "/data", savepoint(), 5), "");
  const Paths before = log_files(files(), "/data");
  const auto remove = [&] {
    return delete_unneeded(files(), "/data", savepoint(), {"/data", "/fast"}, {}, std::nullopt,
                           archive->keep_log());
  };
  ASSERT_TRUE(remove());
  EXPECT_EQ(log_files(files(), "/data"), before);
  // The savepoint does not list the incarnation any more, but the archive knows its cut.
  ASSERT_TRUE(files().make_directory(kArchive));
  archive = run();
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(content().incarnations.begin()->second.cut_epoch, 5u);
  ASSERT_TRUE(remove());
  EXPECT_EQ(log_files(files(), "/data").size(), 1u);
}

/// The start-up forgets the incarnation, because the snapshot has all its commits. The last log
/// files of the incarnation were open until then, so no archive can have them yet.
TEST_F(LogArchiverTest, AnIncarnationThatItsSnapshotCoversIsArchivedWholeAtTheNextStart) {
  const uint64_t number = data_.start.incarnation;
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  ASSERT_EQ(make_snapshot(files(), "/data", savepoint(), 5), "");
  archive.reset();
  auto start = examine(files(), "/data", {"/fast"});
  ASSERT_TRUE(start) << start.error().message;
  ASSERT_TRUE(start->streams_to_read.empty());
  const auto learn = [&]() -> Result<bool> {
    archive = std::make_unique<ArchiveRun>(files(), start->savepoint, archive_config());
    return archive->progress().store_pending().has_value();
  };
  ASSERT_TRUE(store_cut(files(), "/data", *start, learn));
  ASSERT_TRUE(start->savepoint.incarnations.empty());
  const Paths before = log_files(files(), "/data");
  const auto remove = [&] {
    const auto removed = remove_leftovers(files(), "/data", start->savepoint, {"/data", "/fast"},
                                          start->incarnation, archive->keep_log());
    ASSERT_TRUE(removed) << removed.error().message;
  };
  remove();
  EXPECT_EQ(log_files(files(), "/data"), before) << "deleted before it is archived";
  // Simulates a crash before the archive is complete. The next start knows the cut, too.
  archive = std::make_unique<ArchiveRun>(files(), start->savepoint, archive_config());
  EXPECT_TRUE(archive->progress().must_stay(
      {"/data", 0, {number, 0, static_cast<uint32_t>(before.size() - 1)}}));
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(content().incarnations.at(number).cut_epoch, 5u);
  EXPECT_EQ(archive->progress().state().archived_epoch, 5u);
  EXPECT_EQ(log_files(files(), kArchive).size(), before.size() * 2);
  remove();
  EXPECT_TRUE(log_files(files(), "/data").empty());
}

TEST_F(LogArchiverTest, AFileWithOtherContentIsNamedAndNeverOverwritten) {
  const auto archive = run();
  data_.write_all(1, 3);
  ASSERT_EQ(archive->work(), "");
  data_.write_all(4, 12);
  const std::string name = "/node0/" + to_string(LogFileName{data_.start.incarnation, 0, 1});
  const auto copied = copy_file(files(), "/data" + name, kArchive + name, {});
  ASSERT_TRUE(copied) << copied.error().message;
  files().bytes(kArchive + name)[100] ^= std::byte{1};
  const auto damaged = files().bytes(kArchive + name);
  const std::string problem = archive->work();
  EXPECT_TRUE(problem.starts_with(kArchive + name + ": exists with")) << problem;
  EXPECT_EQ(files().bytes(kArchive + name), damaged);
  // If the content is equal, the archiver takes the file for one that a crash has left.
  files().bytes(kArchive + name)[100] ^= std::byte{1};
  EXPECT_EQ(archive->work(), "");
  EXPECT_EQ(differing_file(files()), "");
}

TEST_F(LogArchiverTest, TheArchiveOfOtherDataIsRefused) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  // A copy of the data that was adopted has another id, and a state of its own.
  const auto owner = replace_text_file(files(), "/data/owner", R"({"id": "copy"})");
  ASSERT_TRUE(owner);
  archive = run();
  const auto before = files().paths();
  const auto refused = archive->archiver().work();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::identity);
  EXPECT_TRUE(refused.error().message.starts_with("/archive: is the archive of other data"))
      << refused.error().message;
  EXPECT_EQ(files().paths(), before);
}

TEST_F(LogArchiverTest, AnEmptyMountPointIsNotTakenForTheArchive) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  auto unmounted = files().copy();
  for (const std::string& path : unmounted->paths()) {
    if (path.starts_with(kArchive)) {
      ASSERT_TRUE(unmounted->remove(path));
    }
  }
  ArchiveRun next(*unmounted, savepoint(), archive_config());
  const std::string problem = next.work();
  EXPECT_TRUE(problem.starts_with("/archive: identity.json is missing, but")) << problem;
}

TEST_F(LogArchiverTest, AnEmptyMountPointIsNoArchiveEvenIfTheStateIsLostOrDamaged) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  for (const bool is_damaged : {false, true}) {
    auto unmounted = files().copy();
    for (const std::string& path : unmounted->paths()) {
      if (path.starts_with(kArchive)) {
        ASSERT_TRUE(unmounted->remove(path));
      }
    }
    if (is_damaged) {
      unmounted->bytes(archive_state_path("/data"))[60] ^= std::byte{1};
    } else {
      ASSERT_TRUE(unmounted->remove(archive_state_path("/data")));
    }
    // Starts twice: the state that the first start stores must also know that the archive was
    // begun.
    for (int start = 0; start < 2; ++start) {
      ArchiveRun next(*unmounted, savepoint(), archive_config());
      const std::string problem = next.work();
      EXPECT_TRUE(problem.starts_with("/archive: identity.json is missing, but")) << problem;
      EXPECT_TRUE(next.progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 0}}));
    }
    // Follows the advice of the error: another directory.
    ASSERT_TRUE(unmounted->make_directory("/archive2"));
    ArchiveRun elsewhere(*unmounted, savepoint(), archive_config("/archive2"));
    EXPECT_EQ(elsewhere.work(), "");
  }
}

TEST_F(LogArchiverTest, AFormerDirectoryThatIsNotMountedBeginsNoArchive) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  ASSERT_TRUE(files().make_directory("/archive2"));
  archive = run(archive_config("/archive2"));
  ASSERT_EQ(archive->work(), "");
  for (const std::string& path : files().paths()) {
    if (path.starts_with(std::string(kArchive) + "/")) {
      ASSERT_TRUE(files().remove(path));
    }
  }
  archive = run();
  const std::string problem = archive->work();
  EXPECT_TRUE(problem.starts_with("/archive: identity.json is missing, but")) << problem;
}

TEST(ArchiveStateTest, RemembersTheLastDirectoriesInWhichAnArchiveHasBegun) {
  ArchiveState state;
  for (size_t i = 0; i < kMaxBegunArchives; ++i) state.note_begun("directory " + std::to_string(i));
  EXPECT_TRUE(state.has_begun("directory 0"));
  state.note_begun("directory");
  EXPECT_FALSE(state.has_begun("directory 0"));
  EXPECT_TRUE(state.has_begun("directory 1"));
  EXPECT_EQ(state.begun.size(), kMaxBegunArchives);
}

/// The device of the archive is unmounted after a number of changes in it. Later calls reach the
/// mount point.
class UnmountedArchive : public ForwardingFileSystem {
 public:
  UnmountedArchive(FileSystem& below, uint64_t changes)
      : ForwardingFileSystem(below), changes_left_(changes) {}

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    change(path);
    return ForwardingFileSystem::create(at(path), bytes);
  }
  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    return ForwardingFileSystem::open_for_reading(at(path));
  }
  Result<void> sync_directory(const std::string& path) override {
    change(path);
    return ForwardingFileSystem::sync_directory(at(path));
  }
  Result<void> make_directory(const std::string& path) override {
    change(path);
    return ForwardingFileSystem::make_directory(at(path));
  }
  Result<std::vector<std::string>> list(const std::string& path) override {
    return ForwardingFileSystem::list(at(path));
  }
  Result<bool> exists(const std::string& path) override {
    return ForwardingFileSystem::exists(at(path));
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return ForwardingFileSystem::rename(at(from), at(to));
  }
  Result<void> remove(const std::string& path) override {
    return ForwardingFileSystem::remove(at(path));
  }
  Result<void> forget_cached(const std::string& path) override {
    return ForwardingFileSystem::forget_cached(at(path));
  }

  bool is_mounted() const { return changes_left_ != 0; }

 private:
  void change(const std::string& path) {
    if (path.starts_with(kArchive) && changes_left_ != 0) --changes_left_;
  }
  std::string at(const std::string& path) const {
    if (is_mounted() || !path.starts_with(kArchive)) return path;
    return "/below" + path;
  }

  uint64_t changes_left_;
};

TEST_F(LogArchiverTest, WhatIsStoredBelowAnUnmountedDeviceIsNotArchived) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  data_.write_all(6, 12);
  bool is_mounted = false;
  for (uint64_t changes = 1; !is_mounted; ++changes) {
    SCOPED_TRACE(changes);
    auto disk = files().copy();
    ASSERT_TRUE(disk->make_directory("/below/archive"));
    UnmountedArchive device(*disk, changes);
    ArchiveRun run(*disk, device, savepoint(), archive_config());
    const std::string problem = run.work();
    is_mounted = device.is_mounted();
    EXPECT_EQ(problem.empty(), is_mounted) << problem;
    const ArchiveState state = run.progress().state();
    EXPECT_TRUE(*disk->exists(std::string(kArchive) + "/" + archive_record_name(state.records)));
    for (const auto& [stream, progress] : state.streams) {
      const auto& [incarnation, node, logger] = stream;
      const std::string name = archived_log_name(node, {incarnation, logger, progress.ordinal});
      EXPECT_TRUE(*disk->exists(path_in(kArchive, name))) << name;
    }
    EXPECT_EQ(run.work().empty(), is_mounted) << "it stays unmounted";
    // The next start finds the device again.
    ArchiveRun next(*disk, savepoint(), archive_config());
    EXPECT_EQ(next.work(), "");
    EXPECT_EQ(differing_file(*disk), "");
  }
}

TEST_F(LogArchiverTest, ADamagedRecordOfALostStateIsNamedWithTheWaysOut) {
  auto archive = run();
  data_.write_all(1, 12);
  ASSERT_EQ(archive->work(), "");
  const std::string third = std::string(kArchive) + "/" + archive_record_name(3);
  files().bytes(third)[60] ^= std::byte{1};
  ASSERT_TRUE(files().remove(archive_state_path("/data")));
  archive = run();
  const auto refused = archive->archiver().work();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::corruption);
  const std::string& problem = refused.error().message;
  EXPECT_TRUE(problem.starts_with(third)) << problem;
  EXPECT_NE(problem.find("bring this record back from a copy, or set archive.directory to a new "
                         "directory and take a backup"),
            std::string::npos)
      << problem;
  EXPECT_TRUE(archive->progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 0}}));
  // First way out: a new archive of all log that is left.
  auto other = files().copy();
  ASSERT_TRUE(other->make_directory("/archive2"));
  ArchiveRun elsewhere(*other, savepoint(), archive_config("/archive2"));
  ASSERT_EQ(elsewhere.work(), "");
  const auto second = read_archive(*other, "/archive2");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_EQ(second->damage, "");
  EXPECT_EQ(log_files(*other, "/archive2").size() + 2,
            log_files(*other, "/data").size() + log_files(*other, "/fast").size());
  // Second way out: the record is restored from a copy.
  files().bytes(third)[60] ^= std::byte{1};
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(content().damage, "");
}

TEST_F(LogArchiverTest, AnArchiveThatWasSetBackIsRefused) {
  const auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  const std::string last = std::string(kArchive) + "/" + archive_record_name(content().records);
  ASSERT_TRUE(files().remove(last));
  data_.write_all(6, 12);
  const std::string problem = archive->work();
  EXPECT_TRUE(problem.starts_with(last + ": is missing, but it was stored there")) << problem;
}

TEST_F(LogArchiverTest, AnotherDirectoryBeginsAnotherArchive) {
  auto archive = run();
  data_.write_all(1, 5);
  ASSERT_EQ(archive->work(), "");
  const std::string first = content().identity.id;
  ASSERT_TRUE(files().make_directory("/archive2"));
  archive = run(archive_config("/archive2"));
  EXPECT_TRUE(archive->progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 0}}));
  ASSERT_EQ(archive->work(), "");
  const auto second = read_archive(files(), "/archive2");
  ASSERT_TRUE(second) << second.error().message;
  EXPECT_NE(second->identity.id, first);
  EXPECT_EQ(second->files.size(), content().files.size());
  // Switches back to the first archive. New log files are added to its end.
  data_.write_all(6, 12);
  archive = run();
  ASSERT_EQ(archive->work(), "");
  EXPECT_EQ(content().identity.id, first);
  EXPECT_GT(content().files.size(), second->files.size());
  EXPECT_EQ(content().damage, "");
}

TEST_F(LogArchiverTest, AnIncarnationWithoutCommitsLeavesNoTrace) {
  auto archive = run();
  data_.write_all(1, 5);
  restart();
  archive = run();
  restart();
  archive = run();
  data_.write_all(data_.start.start_epoch, data_.start.start_epoch + 8);
  ASSERT_EQ(archive->work(), "");
  EXPECT_GT(archive->progress().state().archived_epoch, data_.start.start_epoch);
}

TEST_F(LogArchiverTest, DamageToARecordEndsTheArchiveThere) {
  const auto archive = run();
  data_.write_all(1, 12);
  ASSERT_EQ(archive->work(), "");
  const uint64_t records = content().records;
  ASSERT_GT(records, 3u);
  const std::string third = std::string(kArchive) + "/" + archive_record_name(3);
  files().bytes(third)[60] ^= std::byte{1};
  EXPECT_EQ(content().records, 2u);
  EXPECT_TRUE(content().damage.starts_with(third)) << content().damage;
  ASSERT_TRUE(files().remove(third));
  EXPECT_EQ(content().damage, third + ": is missing");
}

/// The device of the archive is full until the test makes room.
class FullArchive : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    if (is_full && path.starts_with(kArchive)) {
      return make_error(ExitCode::disk_full, path + ": no space left");
    }
    return ForwardingFileSystem::create(path, bytes);
  }

  bool is_full = false;
};

TEST_F(LogArchiverTest, AFullArchiveKeepsTheLogAndIsCaughtUpWith) {
  FullArchive device(files());
  ArchiveRun archive(files(), device, savepoint(), archive_config());
  data_.write_all(1, 3);
  ASSERT_EQ(archive.work(), "");
  const uint64_t archived = content().files.size();
  data_.write_all(4, 12);
  device.is_full = true;
  const std::string problem = archive.work();
  EXPECT_TRUE(problem.ends_with(".part: no space left")) << problem;
  EXPECT_EQ(content().files.size(), archived);
  EXPECT_NE(archive.archiver().waiting_text(), "");
  EXPECT_FALSE(archive.progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 0}}));
  EXPECT_TRUE(archive.progress().must_stay({"/data", 0, {data_.start.incarnation, 0, 1}}));
  device.is_full = false;
  ASSERT_EQ(archive.work(), "");
  EXPECT_EQ(archive.archiver().waiting_text(), "");
  EXPECT_EQ(differing_file(files()), "");
}

TEST_F(LogArchiverTest, TheThreadRepeatsWhatFailsAndSaysSoMeanwhile) {
  ASSERT_TRUE(files().remove_directory(kArchive));
  data_.write_all(1, 9);
  Config config = archive_config();
  config.archive.retry = std::chrono::milliseconds(1);
  ArchiveRun archive(files(), savepoint(), config);
  archive.archiver().start();
  EXPECT_TRUE(archive.archiver().await_examined(std::chrono::minutes(1)))
      << "only other data end a start";
  while (archive.archiver().metrics().failures.get() < 3) std::this_thread::yield();
  const Json status = archive.archiver().status();
  EXPECT_EQ(status.at("error"),
            "/archive: the directory of the archive is missing: make or mount it");
  EXPECT_GT(status.at("waiting_files"), 2);
  archive.archiver().stop();
}

TEST_F(LogArchiverTest, OutputOfACommandThatDiffersEachTimeDoesNotFillTheLog) {
  data_.write_all(1, 9);
  Config config = archive_config("");
  config.archive.command = "date +%%s%%N; exit 3 # %p %f";
  config.archive.retry = std::chrono::milliseconds(1);
  std::ostringstream lines;
  const auto logger = std::make_shared<spdlog::logger>(
      "archive", std::make_shared<spdlog::sinks::ostream_sink_mt>(lines));
  ArchiveRun run(files(), savepoint(), config);
  LogArchiver archiver(
      ArchiveSource{
          files(), "/data", {"/data", "/fast"}, run.progress(), [] { return uint64_t{0}; }},
      std::make_unique<ForwardingFileSystem>(files()), config.archive, logger);
  archiver.start();
  while (archiver.metrics().failures.get() < 4) std::this_thread::yield();
  archiver.stop();
  const std::string text = lines.str();
  const size_t first = text.find("it cannot be archived");
  ASSERT_NE(first, std::string::npos) << text;
  EXPECT_EQ(text.find("it cannot be archived", first + 1), std::string::npos) << text;
}

/// Kills the process after each possible number of changes. Then the next run completes the
/// archive.
TEST_F(LogArchiverTest, KilledAnywhereItGoesOnWhereItWas) {
  data_.write_all(1, 9);
  bool is_done = false;
  for (uint64_t changes = 0; !is_done; ++changes) {
    SCOPED_TRACE(std::to_string(changes) + " changes before the kill");
    auto disk = files().copy();
    {
      HookedFileSystem killed(*disk, {}, changes);
      ArchiveRun run(killed, savepoint(), archive_config());
      is_done = run.work().empty();
    }
    ArchiveRun next(*disk, savepoint(), archive_config());
    ASSERT_EQ(next.work(), "");
    EXPECT_EQ(differing_file(*disk), "");
    const auto found = read_archive(*disk, kArchive);
    ASSERT_TRUE(found) << found.error().message;
    EXPECT_EQ(found->damage, "");
    EXPECT_EQ(found->files.size(), log_files(*disk, kArchive).size());
    EXPECT_EQ(found->files.size(),
              log_files(*disk, "/data").size() + log_files(*disk, "/fast").size() - 2);
  }
}

/// Copies everything durably onto a file system that loses its power.
void copy_durably(MemoryFileSystem& from, PowerCutFileSystem& to) {
  for (const std::string& path : from.paths()) {
    const auto& bytes = from.bytes(path);
    const std::string directory = path.substr(0, path.rfind('/'));
    ASSERT_TRUE(to.make_directory(directory));
    const auto file = to.create(path, bytes.size());
    ASSERT_TRUE(file);
    IoBuffer buffer(bytes.size());
    std::ranges::copy(bytes, buffer.bytes().begin());
    const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes().first(bytes.size())};
    ASSERT_TRUE((*file)->write(0, slices));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(to.sync_directory(directory));
  }
}

/// A file counts as archived only if it is durable in the archive (R72). The next run completes the
/// archive.
TEST(ArchivePowerCut, WhatCountsAsArchivedIsInTheArchive) {
  std::mt19937_64 random(seed());
  DataDirectory data;
  ASSERT_EQ(data.begin({kFirst}), "");
  data.write_all(1, 9);
  const uint64_t count = rounds(60, 2'000);
  uint64_t archived = 0;
  for (uint64_t round = 0; round < count; ++round) {
    PowerCutFileSystem disk;
    ASSERT_NO_FATAL_FAILURE(copy_durably(data.files, disk));
    ASSERT_TRUE(disk.make_directory(kArchive));
    {
      HookedFileSystem killed(disk, {}, random() % 120);
      ArchiveRun run(killed, data.start.savepoint, archive_config());
      static_cast<void>(run.work());  // the run may be killed at any change
    }
    const uint64_t cut_seed = random();
    SCOPED_TRACE("cut " + std::to_string(cut_seed));
    const auto image = disk.cut(cut_seed);
    const auto state = read_archive_state(*image, "/data");
    ASSERT_TRUE(state) << state.error().message;
    if (!*state) continue;
    for (const auto& [stream, progress] : (*state)->streams) {
      const auto& [incarnation, node, logger] = stream;
      for (uint32_t ordinal = 0; ordinal <= progress.ordinal; ++ordinal) {
        const std::string name = archived_log_name(node, {incarnation, logger, ordinal});
        const auto own = sum_of_file(data.files, "/data/" + name, {});
        const auto found = sum_of_file(*image, path_in(kArchive, name), {});
        ASSERT_TRUE(own);
        ASSERT_TRUE(found) << name << " counts as archived: " << found.error().message;
        EXPECT_EQ(*found, *own);
        ++archived;
      }
    }
    ArchiveRun next(*image, data.start.savepoint, archive_config());
    ASSERT_EQ(next.work(), "");
    const auto content = read_archive(*image, kArchive);
    ASSERT_TRUE(content) << content.error().message;
    EXPECT_EQ(content->damage, "");
  }
  EXPECT_GT(archived, 0u);
}

}  // namespace
}  // namespace atolldb::test
