// Log volume: the written part of preallocated log files.
#include "coordinator/snapshots/log_volume.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>

#include "engine/format/log_block.h"
#include "engine/log/log_reader.h"
#include "tests/engine/log/memory_file_system.h"
#include "tests/engine/log/written_log.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

constexpr uint64_t kFileBlocks = 64;

class LogVolumeTest : public testing::Test {
 protected:
  LogVolumeTest() { EXPECT_TRUE(files_.make_directory("/data/node1")); }

  static PlannedStream stream(uint64_t incarnation, uint16_t logger) {
    PlannedStream planned;
    planned.stream.directory = "/data";
    planned.stream.node = 1;
    planned.stream.logger = logger;
    planned.stream.incarnation = incarnation;
    return planned;
  }
  /// Makes a file whose first `blocks` blocks are written.
  void make(const LogFileName& name, uint64_t blocks) {
    auto file = files_.create(path_in("/data/node1", to_string(name)),
                              kFileBlocks * uint64_t{kLogBlockBytes});
    ASSERT_TRUE(file) << file.error().message;
    alignas(kIoBlockBytes) LogBlock block{};
    block.header.magic = kLogBlockMagic;
    const std::span<const std::byte> bytes = std::as_bytes(std::span(&block, 1));
    for (uint64_t at = 0; at < blocks; ++at) {
      const auto written = (*file)->write(at * kLogBlockBytes, std::span(&bytes, 1));
      ASSERT_TRUE(written) << written.error().message;
    }
  }

  test::PowerCutFileSystem files_;
};

TEST_F(LogVolumeTest, OfTheFilesOfItsStreamsWhatIsWrittenCounts) {
  std::mt19937_64 random(test::seed());
  for (uint64_t incarnation = 1; incarnation <= 20; ++incarnation) {
    const uint64_t last = random() % (kFileBlocks + 1);
    make({incarnation, 0, 0}, kFileBlocks);
    make({incarnation, 0, 1}, last);
    make({incarnation, 1, 0}, 3);  // a file of another logger
    EXPECT_EQ(log_volume(files_, {stream(incarnation, 0)}), (kFileBlocks + last) * kLogBlockBytes)
        << last;
  }
  EXPECT_EQ(log_volume(files_, {stream(1, 1), stream(2, 1)}), 6 * uint64_t{kLogBlockBytes});
}

TEST_F(LogVolumeTest, WhatIsMissingOrCannotBeReadIsNothing) {
  EXPECT_EQ(log_volume(files_, {}), 0u);
  EXPECT_EQ(log_volume(files_, {stream(1, 0)}), 0u);
  make({1, 0, 0}, 5);
  files_.power_off();
  EXPECT_EQ(log_volume(files_, {stream(1, 0)}), 0u);
}

TEST(LogVolume, BlocksThatMappersSkipDoNotCount) {
  constexpr uint64_t kStart = 10;
  const uint64_t first = test::seed();
  uint64_t left_out = 0;
  for (uint64_t round = 0; round < 20; ++round) {
    std::mt19937_64 random(first + round);
    test::MemoryFileSystem files;
    LogWriter writer = test::make_writer(files, test::kFirst, 5, kStart, 4 + random() % 100);
    uint64_t epoch = kStart - 1;
    for (int i = 0; i < 60; ++i) {
      const uint64_t durable = epoch++;
      test::write_epoch(writer, epoch, random() % 4, durable, random);
    }
    PlannedStream planned;
    planned.stream = {"/data", 0, 0, 5, kStart, test::kUuid};
    planned.stream.covered_epoch = kStart + random() % 60;
    planned.last_epoch = epoch;
    uint64_t read = 0;
    auto reader = LogReader::open(files, planned.stream, CoveredBlocks::skip);
    ASSERT_TRUE(reader);
    for (auto block = reader->next(); block && *block != nullptr; block = reader->next()) {
      read += kLogBlockBytes;
    }
    EXPECT_EQ(log_volume(files, {planned}), read) << "ATOLL_SEED=" << first + round;
    left_out += reader->skipped_bytes();
  }
  EXPECT_GT(left_out, 0u);
}

}  // namespace
}  // namespace atolldb
