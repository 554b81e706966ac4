// File system that keeps a reserve of free space.
#include "shared/file/file_system_wrappers.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "shared/file/posix_file_system.h"

namespace atolldb {
namespace {

constexpr uint64_t kBlock = kIoBlockBytes;

class ReservingFileSystemTest : public testing::Test {
 protected:
  ReservingFileSystemTest() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "atoll_reserve_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~ReservingFileSystemTest() override { std::filesystem::remove_all(folder_); }

  /// The number of free bytes is set by the test.
  ReservingFileSystem with_reserve(uint64_t reserve) {
    return {below_, reserve, [this](const std::string& directory) -> Result<uint64_t> {
              EXPECT_EQ(directory, folder_);
              return free_;
            }};
  }

  PosixFileSystem below_;
  std::string folder_;
  uint64_t free_ = 0;
};

TEST_F(ReservingFileSystemTest, FilesAreMadeAndGrowDownToTheReserveAndNotBelow) {
  ReservingFileSystem files = with_reserve(10 * kBlock);
  const std::string path = folder_ + "/a";
  free_ = 12 * kBlock;
  const auto refused = files.create(path, 3 * kBlock);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ExitCode::disk_full);
  EXPECT_EQ(refused.error().message,
            folder_ +
                ": 49152 bytes are free, and gleaner.disk_reserve keeps 40960 of them for the "
                "log: free disk space, or lower gleaner.disk_reserve (automatic: lower "
                "durability.log_file_size)");
  EXPECT_FALSE(*below_.exists(path));
  auto file = files.create(path, 2 * kBlock);
  ASSERT_TRUE(file) << file.error().message;
  free_ = 11 * kBlock;
  EXPECT_TRUE((*file)->grow(3 * kBlock));
  free_ = 11 * kBlock - 1;
  const auto full = (*file)->grow(4 * kBlock);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ExitCode::disk_full);
  EXPECT_EQ(*(*file)->size(), 3 * kBlock) << "the file is as long as it was, and good";
  EXPECT_TRUE((*file)->grow(3 * kBlock)) << "what does not grow needs no room";
  alignas(kIoBlockBytes) static const std::array<std::byte, kBlock> bytes{};
  const std::array<std::span<const std::byte>, 1> slices = {bytes};
  EXPECT_TRUE((*file)->write(0, slices));
  auto again = files.open(path);
  ASSERT_TRUE(again);
  EXPECT_FALSE((*again)->grow(4 * kBlock));
}

TEST_F(ReservingFileSystemTest, RoomThatIsSmallerThanTheReserveIsNoRoom) {
  const ReservingFileSystem files = with_reserve(10 * kBlock);
  free_ = 10 * kBlock;
  EXPECT_TRUE(files.check_room(folder_, 0));
  EXPECT_FALSE(files.check_room(folder_, 1));
  free_ = 10 * kBlock - 1;
  EXPECT_FALSE(files.check_room(folder_, 0));
}

TEST_F(ReservingFileSystemTest, WithoutAReserveFreeSpaceIsNotChecked) {
  ReservingFileSystem files(below_, 0, [](const std::string&) -> Result<uint64_t> {
    ADD_FAILURE() << "asked";
    return 0;
  });
  EXPECT_TRUE(files.create(folder_ + "/a", kBlock));
  EXPECT_TRUE(files.check_room(folder_, UINT64_MAX));
}

TEST_F(ReservingFileSystemTest, AsksTheFileSystemOfTheNearestDirectoryThatExists) {
  const auto here = free_bytes_at(folder_);
  ASSERT_TRUE(here) << here.error().message;
  EXPECT_GT(*here, 0u);
  const auto below = free_bytes_at(folder_ + "/not/yet/made");
  ASSERT_TRUE(below) << below.error().message;
  EXPECT_GT(*below, 0u);
  std::filesystem::create_directory(folder_ + "/x");
  EXPECT_FALSE(free_bytes_at("/proc/self/cmdline/x"));
}

}  // namespace
}  // namespace atolldb
