// How much of preallocated log files is written.
#include "coordinator/gleaner/log_volume.h"

#include <gtest/gtest.h>

#include <random>
#include <span>
#include <string>

#include "engine/log/log_block.h"
#include "tests/support/power_cut_file_system.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

constexpr uint64_t kFileBlocks = 64;

class LogVolumeTest : public testing::Test {
 protected:
  LogVolumeTest() { EXPECT_TRUE(files_.make_directory("/data/node1")); }

  static GleanStream stream(uint64_t incarnation, uint16_t logger) {
    GleanStream gleaned;
    gleaned.stream.directory = "/data";
    gleaned.stream.node = 1;
    gleaned.stream.logger = logger;
    gleaned.stream.incarnation = incarnation;
    return gleaned;
  }
  /// A file whose first `blocks` are written.
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
    make({incarnation, 1, 0}, 3);  // of another logger
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

}  // namespace
}  // namespace atolldb
