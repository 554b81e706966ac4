// File systems that keep a reserve of free space, and that bound the bytes that are not synced.
#include "shared/file/file_system_wrappers.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "shared/file/io_buffer.h"
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

  /// Returns a file system that keeps this reserve. The test sets the number of free bytes.
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

/// Counts the syncs of files, and fails them while `fails` is true.
class CountedSyncs : public ForwardingFileSystem {
 public:
  using ForwardingFileSystem::ForwardingFileSystem;

  Result<std::unique_ptr<File>> create(const std::string& path, uint64_t bytes) override {
    return counted(below().create(path, bytes));
  }
  Result<std::unique_ptr<File>> open(const std::string& path) override {
    return counted(below().open(path));
  }

  uint32_t syncs = 0;
  bool fails = false;

 private:
  class Counted : public ForwardingFile {
   public:
    Counted(std::unique_ptr<File> below, CountedSyncs& owner)
        : ForwardingFile(std::move(below)), owner_(owner) {}
    Result<void> sync() override {
      ++owner_.syncs;
      if (owner_.fails) return make_error(ExitCode::durability, "sync: failed by the test");
      return below().sync();
    }

   private:
    CountedSyncs& owner_;
  };
  Result<std::unique_ptr<File>> counted(Result<std::unique_ptr<File>> file) {
    if (!file) return file;
    return std::make_unique<Counted>(*std::move(file), *this);
  }
};

class SyncingFileSystemTest : public ReservingFileSystemTest {
 protected:
  static Result<void> write(File& file, uint64_t offset, uint64_t bytes) {
    static IoBuffer buffer(kMaxUnsyncedBytes);
    const std::array<std::span<const std::byte>, 1> slices = {buffer.bytes().first(bytes)};
    return file.write(offset, slices);
  }

  CountedSyncs counted_{below_};
  SyncingFileSystem files_{counted_};
};

TEST_F(SyncingFileSystemTest, AFileIsSyncedAtTheLimitAndNotBefore) {
  auto file = files_.create(folder_ + "/a", 2 * kMaxUnsyncedBytes);
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_TRUE(write(**file, 0, kMaxUnsyncedBytes - kBlock));
  EXPECT_EQ(counted_.syncs, 0u);
  ASSERT_TRUE(write(**file, kMaxUnsyncedBytes - kBlock, kBlock));
  EXPECT_EQ(counted_.syncs, 1u);
  ASSERT_TRUE(write(**file, 0, kMaxUnsyncedBytes - kBlock));
  ASSERT_TRUE((*file)->sync());
  EXPECT_EQ(counted_.syncs, 2u);
  ASSERT_TRUE(write(**file, 0, kBlock));
  EXPECT_EQ(counted_.syncs, 2u) << "the sync of the caller counts";
  file->reset();
  auto again = files_.open(folder_ + "/a");
  ASSERT_TRUE(again) << again.error().message;
  ASSERT_TRUE(write(**again, 0, kMaxUnsyncedBytes));
  EXPECT_EQ(counted_.syncs, 3u);
}

TEST_F(SyncingFileSystemTest, AFailedSyncFailsTheWrite) {
  auto file = files_.create(folder_ + "/a", kMaxUnsyncedBytes);
  ASSERT_TRUE(file) << file.error().message;
  counted_.fails = true;
  const auto written = write(**file, 0, kMaxUnsyncedBytes);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ExitCode::durability);
}

}  // namespace
}  // namespace atolldb
