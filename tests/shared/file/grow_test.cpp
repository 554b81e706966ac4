// Growing files: the same test for every backend that keeps written data.
#include <gtest/gtest.h>

#include "shared/file/file.h"
#include "shared/file/file_system.h"
#include "tests/shared/file/faulty_calls.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/power_cut_file_system.h"

namespace atolldb::test {
namespace {

TEST(FileGrowth, GrowsByTheSizeWithinTheLimitsAndByWhatIsNeeded) {
  constexpr FileGrowth kGrowth = {.least = 8, .most = 32};
  EXPECT_EQ(kGrowth.next_size(0, 1), 8u);
  EXPECT_EQ(kGrowth.next_size(8, 1), 16u);
  EXPECT_EQ(kGrowth.next_size(20, 1), 40u);
  EXPECT_EQ(kGrowth.next_size(32, 1), 64u);
  EXPECT_EQ(kGrowth.next_size(100, 1), 132u);
  EXPECT_EQ(kGrowth.next_size(8, 9), 17u) << "more is needed than the size";
  EXPECT_EQ(kGrowth.next_size(100, 33), 133u) << "more is needed than the limit";
}

void grows_and_keeps_what_it_has(FileSystem& files, const std::string& path) {
  auto created = files.create(path, 0);
  ASSERT_TRUE(created) << created.error().message;
  File& file = **created;
  for (uint8_t i = 1; i <= 3; ++i) {
    ASSERT_TRUE(file.grow(i * kIoBlockBytes));
    ASSERT_TRUE(write(file, (i - 1u) * kIoBlockBytes, Blocks(1, i).bytes()));
  }
  ASSERT_TRUE(file.grow(5 * kIoBlockBytes));
  EXPECT_EQ(*file.size(), 5 * kIoBlockBytes);
  Blocks all(5, 9);
  ASSERT_EQ(*file.read(0, all.bytes()), 5 * kIoBlockBytes);
  for (uint8_t i = 0; i < 5; ++i) {
    EXPECT_TRUE(std::ranges::equal(all.block(i), Blocks(1, i < 3 ? i + 1 : 0).bytes()));
  }
  EXPECT_FALSE(file.grow(4 * kIoBlockBytes)) << "never shorter";
  EXPECT_FALSE(file.grow(5 * kIoBlockBytes + 1));
  EXPECT_TRUE(file.sync()) << "a refused size leaves the file good";
}

TEST(FilesThatGrow, KeepWhatTheyHaveWithZerosAfterIt) {
  FileFolder folder;
  for (const FileBackend backend : {FileBackend::posix, FileBackend::pmem}) {
    const auto files = make_file_system({.backend = backend, .latency = {}, .warn = {}});
    const std::string name = backend == FileBackend::posix ? "/posix" : "/pmem";
    ASSERT_NO_FATAL_FAILURE(grows_and_keeps_what_it_has(*files, folder.path() + name));
  }
  PowerCutFileSystem memory;
  ASSERT_NO_FATAL_FAILURE(grows_and_keeps_what_it_has(memory, "/f"));
}

TEST(FilesThatGrow, AreAsLongAsBeforeWhenThereIsNoRoom) {
  FileFolder folder;
  FaultyCalls calls;
  PosixFileSystem files({}, calls);
  auto file = files.create(folder.path() + "/f", kIoBlockBytes);
  ASSERT_TRUE(file);
  calls.allocation_error = ENOSPC;
  auto grown = (*file)->grow(8 * kIoBlockBytes);
  ASSERT_FALSE(grown);
  EXPECT_EQ(grown.error().code, ExitCode::disk_full);
  EXPECT_NE(grown.error().message.find("growth of " + folder.path() + "/f"), std::string::npos);
  EXPECT_EQ(*(*file)->size(), kIoBlockBytes);
  EXPECT_TRUE(write(**file, 0, Blocks(1, 1).bytes()));
}

}  // namespace
}  // namespace atolldb::test
