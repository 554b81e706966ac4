// The scrub of a node: its counts of damage, and its progress.
#include "soc/snapshot/scrubber.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <thread>

#include "engine/snapshot/snapshot_writer.h"
#include "shared/file/forwarding_file_system.h"
#include "tests/engine/log/written_log.h"

namespace atolldb::test {
namespace {

/// Writes a snapshot file of node 0 in which all pages but the first are damaged.
SnapshotFilePlace write_damaged_file(MemoryFileSystem& files, uint32_t snapshot, uint64_t damaged) {
  auto writer = SnapshotWriter::create(files, {"/data", 0, snapshot, 5, kUuid});
  CHECK(writer.has_value());
  for (uint64_t page = 0; page < damaged; ++page) CHECK(writer->next(1).has_value());
  CHECK(writer->finish().has_value());
  MemoryFileSystem::Bytes& bytes = files.bytes(snapshot_file_path("/data", 0, snapshot));
  for (uint64_t page = 1; page <= damaged; ++page) bytes[page * kPageBytes + 1000] ^= std::byte{1};
  return {snapshot, 0, "/data", damaged + 1};
}

ScrubberSettings settings_for(FileSystem& files) {
  ScrubberSettings settings;
  settings.file_system = &files;
  settings.cluster_uuid = kUuid;
  settings.bytes_per_s = uint64_t{1} << 40;
  settings.log_directories = {"/data"};
  settings.pause = std::chrono::milliseconds(0);
  return settings;
}

void run_one_cycle(Scrubber& scrubber) {
  scrubber.start();
  while (scrubber.progress().cycles == 0) std::this_thread::yield();
  scrubber.stop();
}

TEST(ScrubberTest, DamageThatIsNotListedIsForgottenWithItsFile) {
  constexpr uint64_t kDamaged = 700;  // in each file
  MemoryFileSystem files;
  const SnapshotFilePlace first = write_damaged_file(files, 1, kDamaged);
  const SnapshotFilePlace second = write_damaged_file(files, 2, kDamaged);
  Scrubber scrubber(settings_for(files), make_silent_logger("scrub"));
  scrubber.set_files({first, second});
  run_one_cycle(scrubber);
  EXPECT_EQ(scrubber.progress().damaged, 2 * kDamaged);
  EXPECT_EQ(scrubber.describe().at("damage").size(), kMaxListedDamage);
  scrubber.set_files({first});
  EXPECT_EQ(scrubber.progress().damaged, kDamaged);
  EXPECT_EQ(scrubber.describe().at("damage").size(), kDamaged);
  scrubber.set_files({});
  EXPECT_EQ(scrubber.progress().damaged, 0u);
}

TEST(ScrubberTest, ANewPaceStartsAScrubThatIsOffAndEndsALongPause) {
  MemoryFileSystem files;
  const SnapshotFilePlace place = write_damaged_file(files, 1, 3);
  ScrubberSettings settings = settings_for(files);
  settings.bytes_per_s = 0;
  settings.pause = std::chrono::hours(1);
  Scrubber scrubber(settings, make_silent_logger("scrub"));
  scrubber.set_files({place});
  scrubber.start();
  scrubber.set_pace(uint64_t{1} << 40, std::chrono::hours(1));
  EXPECT_EQ(scrubber.progress().bytes_read, 0u) << "the pause has not ended";
  scrubber.set_pace(uint64_t{1} << 40, std::chrono::milliseconds(0));
  while (scrubber.progress().cycles == 0) std::this_thread::yield();
  EXPECT_EQ(scrubber.progress().damaged, 3u);
  scrubber.set_pace(0, std::chrono::milliseconds(0));
  scrubber.stop();
}

/// Records the progress of the first cycle at each read of a log file.
class ProgressFileSystem : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  const Scrubber* scrubber = nullptr;
  std::map<std::string, uint64_t> percent_at;  // progress at the latest read of each file

  Result<std::unique_ptr<File>> open_for_reading(const std::string& path) override {
    auto file = below().open_for_reading(path);
    if (!file || !path.ends_with(".atlog")) return file;
    return std::make_unique<LogFile>(*this, *std::move(file));
  }

 private:
  class LogFile : public ForwardingFile {
   public:
    LogFile(ProgressFileSystem& owner, std::unique_ptr<File> below)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
      const ScrubProgress progress = owner_.scrubber->progress();
      if (progress.cycles == 0) owner_.percent_at[path()] = progress.percent;
      return below().read(offset, into);
    }

   private:
    ProgressFileSystem& owner_;
  };
};

TEST(ScrubberTest, TheProgressOfACycleCountsTheLogs) {
  MemoryFileSystem memory;
  std::mt19937_64 random(1);
  LogWriter writer = make_writer(memory, kFirst, 1, 1);
  // Two full files of 8 blocks, and a part of the third.
  for (uint64_t epoch = 1; epoch <= 6; ++epoch) write_epoch(writer, epoch, 2, epoch - 1, random);
  const SnapshotFilePlace place = write_damaged_file(memory, 1, 3);
  ProgressFileSystem files(memory);
  Scrubber scrubber(settings_for(files), make_silent_logger("scrub"));
  files.scrubber = &scrubber;
  scrubber.set_files({place});
  run_one_cycle(scrubber);
  ASSERT_EQ(files.percent_at.size(), 3u);
  // A cycle has 4 pages and 16 blocks of log. The 3 damaged pages are read first, then the 8 blocks
  // of the first file.
  EXPECT_LT(files.percent_at.at("/data/node0/log_1_0_000000.atlog"), 40u);
  EXPECT_LT(files.percent_at.at("/data/node0/log_1_0_000001.atlog"), 80u);
  EXPECT_EQ(files.percent_at.at("/data/node0/log_1_0_000002.atlog"), 99u);
}

}  // namespace
}  // namespace atolldb::test
