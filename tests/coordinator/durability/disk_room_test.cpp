// Disk space: the reserve for log files, and the ballast file.
#include "coordinator/durability/disk_room.h"

#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "shared/file/file_system_wrappers.h"
#include "shared/file/posix_file_system.h"

namespace atolldb::test {
namespace {

class DiskRoomTest : public testing::Test {
 protected:
  static constexpr uint64_t kFile = uint64_t{1} << 20;

  DiskRoomTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "atoll_room_XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    config_.cluster.data_dir = folder_ + "/data";
    config_.nodes.assign(2, NodeConfig{});
    config_.nodes[1].loggers = 3;
    config_.durability.log_file_size = kFile;
    config_.durability.ballast_files = 2;
    config_.gleaner.disk_reserve = kFile;
    std::filesystem::create_directories(config_.cluster.data_dir);
  }
  ~DiskRoomTest() override {
    if (is_mounted_) umount2(mounted().c_str(), MNT_DETACH);
    std::filesystem::remove_all(folder_);
  }
  std::string mounted() const { return folder_ + "/small"; }
  /// Mounts a separate file system for node 1. Returns false if this machine cannot mount one.
  bool mount_small(const char* size) {
    std::filesystem::create_directories(mounted());
    const std::string options = std::string("size=") + size;
    is_mounted_ = mount("tmpfs", mounted().c_str(), "tmpfs", 0, options.c_str()) == 0;
    config_.nodes[1].directories = {mounted() + "/logs"};
    if (is_mounted_) std::filesystem::create_directories(mounted() + "/logs");
    return is_mounted_;
  }
  static uint64_t size_of(const std::string& directory) {
    const std::string path = ballast_path(directory);
    return std::filesystem::exists(path) ? std::filesystem::file_size(path) : 0;
  }

  std::string folder_;
  bool is_mounted_ = false;
  Config config_;
  PosixFileSystem files_;
};

TEST_F(DiskRoomTest, CountsTheLoggersOfEachFileSystem) {
  const auto all = log_file_systems(config_);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].directory, config_.cluster.data_dir);
  EXPECT_EQ(all[0].loggers, 4u);
  if (!mount_small("64m")) GTEST_SKIP() << "no tmpfs can be mounted: " << std::strerror(errno);
  const auto two = log_file_systems(config_);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].loggers, 1u);
  EXPECT_EQ(two[1].directory, mounted() + "/logs");
  EXPECT_EQ(two[1].loggers, 3u);
}

TEST_F(DiskRoomTest, TheReserveFollowsTheLoggersAndTheirFilesFromOneGibibyteOn) {
  const std::string& data = config_.cluster.data_dir;
  config_.gleaner.disk_reserve = 0;
  // Four loggers with two log files each: the reserve holds eight log files.
  config_.durability.log_file_size = kMinDiskReserve / 8;
  EXPECT_EQ(disk_reserve(config_, data), kMinDiskReserve);
  config_.durability.log_file_size = kMinDiskReserve / 8 + 4096;
  EXPECT_EQ(disk_reserve(config_, data), kMinDiskReserve + 8 * 4096);
  EXPECT_EQ(disk_reserve(config_, data + "/not/made/yet"), kMinDiskReserve + 8 * 4096);
  config_.durability.log_file_size = kFile;
  EXPECT_EQ(disk_reserve(config_, data), kMinDiskReserve);
  EXPECT_TRUE(low_disk_reserves(config_).empty());
}

TEST_F(DiskRoomTest, AnotherReserveHoldsAsItIsAndALowOneGivesAWarning) {
  const std::string& data = config_.cluster.data_dir;
  config_.gleaner.disk_reserve = 8 * kFile;
  EXPECT_EQ(disk_reserve(config_, data), 8 * kFile);
  EXPECT_TRUE(low_disk_reserves(config_).empty());
  config_.gleaner.disk_reserve = 8 * kFile - 1;
  EXPECT_EQ(disk_reserve(config_, data), 8 * kFile - 1);
  const std::vector<std::string> warnings = low_disk_reserves(config_);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0],
            data +
                ": gleaner.disk_reserve leaves 8388607 bytes free, but 2 log files of each of its "
                "4 loggers have 8388608: snapshots or checkpoints may take the room that the log "
                "needs: raise "
                "gleaner.disk_reserve, or remove it from the config");
}

TEST_F(DiskRoomTest, EachFileSystemHasAReserveOfItsOwn) {
  if (!mount_small("64m")) GTEST_SKIP() << "no tmpfs can be mounted: " << std::strerror(errno);
  const std::string& data = config_.cluster.data_dir;
  config_.gleaner.disk_reserve = 0;
  config_.durability.log_file_size = kMinDiskReserve;
  EXPECT_EQ(disk_reserve(config_, data), 2 * kMinDiskReserve) << "one logger";
  EXPECT_EQ(disk_reserve(config_, mounted() + "/logs"), 6 * kMinDiskReserve) << "three loggers";
  EXPECT_EQ(disk_reserve(config_, mounted() + "/logs/a/b"), 6 * kMinDiskReserve);
  // Node 0 has no logs in data_dir any more, but snapshots write there.
  config_.nodes[0].directories = {mounted() + "/logs"};
  EXPECT_EQ(disk_reserve(config_, data), kMinDiskReserve);
  EXPECT_EQ(disk_reserve(config_, mounted()), 8 * kMinDiskReserve);
  config_.gleaner.disk_reserve = 7 * kMinDiskReserve;
  ASSERT_EQ(low_disk_reserves(config_).size(), 1u);
  EXPECT_TRUE(low_disk_reserves(config_)[0].starts_with(mounted() + "/logs: "));
  EXPECT_EQ(disk_reserve(config_, data), 7 * kMinDiskReserve);
}

TEST_F(DiskRoomTest, TheBallastIsMadeOnceGivenUpAndMadeAgain) {
  Ballast ballast(config_, files_);
  const std::string& data = config_.cluster.data_dir;
  const std::set<std::string> directories = {data, folder_ + "/missing"};
  EXPECT_EQ(ballast.release(directories).value(), 0u);
  auto built = ballast.rebuild(directories);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(size_of(data), 8 * kFile);
  const auto made_at = std::filesystem::last_write_time(ballast_path(data));
  ASSERT_TRUE(ballast.rebuild(directories));
  EXPECT_EQ(std::filesystem::last_write_time(ballast_path(data)), made_at);
  // A ballast file of another size, or one that a crash left incomplete, is rebuilt.
  config_.durability.ballast_files = 1;
  ASSERT_TRUE(ballast.rebuild(directories));
  EXPECT_EQ(size_of(data), 4 * kFile);
  std::filesystem::resize_file(ballast_path(data), kFile);
  ASSERT_TRUE(ballast.rebuild(directories));
  EXPECT_EQ(size_of(data), 4 * kFile);
  EXPECT_EQ(ballast.release(directories).value(), 1u);
  EXPECT_EQ(size_of(data), 0u);
  // When the ballast is switched off, the existing file is removed.
  ASSERT_TRUE(ballast.rebuild(directories));
  config_.durability.ballast_files = 0;
  ASSERT_TRUE(ballast.rebuild(directories));
  EXPECT_EQ(size_of(data), 0u);
}

TEST_F(DiskRoomTest, TheBallastLeavesTheReserveFree) {
  if (!mount_small("13m")) GTEST_SKIP() << "no tmpfs can be mounted: " << std::strerror(errno);
  // Node 1 needs 6 MiB of ballast and 6 MiB of reserve on its small file system.
  config_.gleaner.disk_reserve = 6 * kFile;
  Ballast ballast(config_, files_);
  const std::set<std::string> directories = {config_.cluster.data_dir, mounted() + "/logs"};
  auto built = ballast.rebuild(directories);
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(size_of(mounted() + "/logs"), 6 * kFile);
  EXPECT_EQ(ballast.release(directories).value(), 2u);
  config_.gleaner.disk_reserve = 8 * kFile;
  built = ballast.rebuild(directories);
  ASSERT_FALSE(built);
  EXPECT_EQ(built.error().code, ExitCode::disk_full);
  EXPECT_TRUE(built.error().message.contains(ballast_path(mounted() + "/logs")))
      << built.error().message;
  EXPECT_EQ(size_of(mounted() + "/logs"), 0u);
  EXPECT_EQ(size_of(config_.cluster.data_dir), 2 * kFile) << "the other file system has room";
}

}  // namespace
}  // namespace atolldb::test
