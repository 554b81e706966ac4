// Times of epochs: the ring, torn and damaged entries.
#include "engine/log/epoch_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/engine/log/memory_file_system.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr ClusterUuid kData = {1, 2, 3};
constexpr ClusterUuid kOtherData = {3, 2, 1};
constexpr uint64_t kEntryBytes = 32;

uint64_t time_of(uint64_t epoch) { return 1'000'000 + 10 * epoch; }

void add_epochs(FileSystem& files, const ClusterUuid& uuid, uint64_t first, uint64_t last) {
  auto writer = EpochTimesWriter::open(files, "/data", uuid);
  ASSERT_TRUE(writer) << writer.error().message;
  for (uint64_t epoch = first; epoch <= last; ++epoch) {
    const auto added = writer->add({epoch, time_of(epoch)});
    ASSERT_TRUE(added) << added.error().message;
  }
}

std::vector<EpochTime> times_in(FileSystem& files, const ClusterUuid& uuid = kData) {
  const auto times = read_epoch_times(files, "/data", uuid);
  EXPECT_TRUE(times) << times.error().message;
  return times ? *times : std::vector<EpochTime>{};
}

TEST(EpochTimes, AreReadAsTheyWereAddedOverSeveralStarts) {
  std::printf("seed: none, nothing here is random\n");
  MemoryFileSystem files;
  EXPECT_TRUE(times_in(files).empty());
  add_epochs(files, kData, 1, 3);
  add_epochs(files, kData, 3, 200);  // an epoch that is not after the last one is ignored
  const auto times = times_in(files);
  ASSERT_EQ(times.size(), 200u);
  for (uint64_t i = 0; i < times.size(); ++i)
    EXPECT_EQ(times[i], (EpochTime{i + 1, time_of(i + 1)}));
  EXPECT_TRUE(times_in(files, kOtherData).empty());
}

TEST(EpochTimes, OfDiscardedDataDoNotCount) {
  MemoryFileSystem files;
  add_epochs(files, kData, 1, 300);
  add_epochs(files, kOtherData, 1, 5);
  EXPECT_EQ(times_in(files, kOtherData).size(), 5u);
}

TEST(EpochTimes, OverwriteTheOldestWhenTheFileIsFull) {
  MemoryFileSystem files;
  constexpr uint64_t kEntries = kEpochTimesBytes / kEntryBytes;
  add_epochs(files, kData, 1, kEntries + 300);
  EXPECT_EQ(files.bytes(epoch_times_path("/data")).size(), kEpochTimesBytes);
  const auto times = times_in(files);
  ASSERT_EQ(times.size(), kEntries);
  EXPECT_EQ(times.front().epoch, 301u);
  EXPECT_EQ(times.back().epoch, kEntries + 300);
  add_epochs(files, kData, kEntries + 301, kEntries + 301);
  EXPECT_EQ(times_in(files).front().epoch, 302u);
}

TEST(EpochTimes, OfATimeAreThoseOfTheLastEpochBefore) {
  const std::vector<EpochTime> times = {{3, 100}, {5, 200}, {9, 150}, {12, 300}};
  EXPECT_FALSE(epoch_at(times, 99));
  EXPECT_EQ(epoch_at(times, 100)->epoch, 3u);
  EXPECT_EQ(epoch_at(times, 149)->epoch, 3u);
  EXPECT_EQ(epoch_at(times, 150)->epoch, 9u) << "the clock was set back: the later one counts";
  EXPECT_EQ(epoch_at(times, 250)->epoch, 9u);
  EXPECT_EQ(epoch_at(times, 1'000)->epoch, 12u);
}

TEST(EpochTimes, LoseOnlyDamagedEntries) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 50; ++round) {
    MemoryFileSystem files;
    add_epochs(files, kData, 1, 300);
    const uint64_t at = random() % (300 * kEntryBytes);
    files.bytes(epoch_times_path("/data"))[at] ^= std::byte{1};
    const auto times = times_in(files);
    ASSERT_EQ(times.size(), 299u);
    const uint64_t lost = at / kEntryBytes + 1;
    EXPECT_TRUE(std::ranges::find(times, lost, &EpochTime::epoch) == times.end());
  }
}

TEST(EpochTimes, APowerCutLosesOnlyTheLastUnsyncedOnes) {
  std::mt19937_64 random(seed());
  const uint64_t count = rounds(50, 1'000);
  for (uint64_t round = 0; round < count; ++round) {
    PowerCutFileSystem disk;
    const uint64_t synced = random() % 200;
    {
      auto writer = EpochTimesWriter::open(disk, "/data", kData);
      ASSERT_TRUE(writer);
      for (uint64_t epoch = 1; epoch <= synced; ++epoch) {
        ASSERT_TRUE(writer->add({epoch, time_of(epoch)}));
      }
      ASSERT_TRUE(writer->sync());
      const uint64_t last = synced + random() % 100;
      for (uint64_t epoch = synced + 1; epoch <= last; ++epoch) {
        ASSERT_TRUE(writer->add({epoch, time_of(epoch)}));
      }
    }
    const uint64_t cut_seed = random();
    SCOPED_TRACE("cut " + std::to_string(cut_seed));
    const auto image = disk.cut(cut_seed);
    const auto times = times_in(*image);
    ASSERT_GE(times.size(), synced);
    for (uint64_t i = 0; i < synced; ++i) ASSERT_EQ(times[i].epoch, i + 1);
    add_epochs(*image, kData, 1'000, 1'001);
    EXPECT_EQ(times_in(*image).back().epoch, 1'001u);
  }
}

}  // namespace
}  // namespace atolldb::test
