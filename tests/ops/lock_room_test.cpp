// Lock file of the data directory on a full disk: a start-up can still write it (R54).
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ops/launcher/process_lock.h"
#include "shared/base/process_id.h"

namespace atolldb::test {
namespace {

class LockRoomTest : public testing::Test {
 protected:
  LockRoomTest() {
    std::string pattern = "/tmp/atoll-test-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~LockRoomTest() override {
    if (is_mounted_) umount2(folder_.c_str(), MNT_DETACH);
    std::filesystem::remove_all(folder_);
  }
  std::string path() const { return folder_ + "/lock"; }

  bool is_ours() const {
    const auto launcher = launcher_of_lock(path());
    return launcher && launcher->pid == this_process().pid;
  }

  std::string folder_;
  bool is_mounted_ = false;
};

TEST_F(LockRoomTest, TheFileKeepsItsBlocksWhenItsOwnerForgetsItsProcesses) {
  {
    auto lock = ProcessLock::acquire(path(), "bank", "cluster.data_dir");
    ASSERT_TRUE(lock) << lock.error().message;
    EXPECT_TRUE(is_ours());
    EXPECT_EQ(std::filesystem::file_size(path()), 4096u);
    // The list needs more than a block: the file grows, and keeps its size.
    ASSERT_TRUE(lock->write_processes(std::vector<ProcessId>(200, this_process())));
    const uint64_t large = std::filesystem::file_size(path());
    EXPECT_GT(large, 4096u);
    EXPECT_EQ(large % 4096, 0u);
    ASSERT_TRUE(lock->write_processes({}));
    EXPECT_TRUE(is_ours());
    lock->forget_processes();
    EXPECT_FALSE(launcher_of_lock(path()));
    EXPECT_EQ(std::filesystem::file_size(path()), large);
  }
  auto next = ProcessLock::acquire(path(), "bank", "cluster.data_dir");
  ASSERT_TRUE(next) << next.error().message;
  EXPECT_FALSE(next->was_left());
}

TEST_F(LockRoomTest, TheNextStartWritesItThoughTheDiskIsFull) {
  is_mounted_ = mount("tmpfs", folder_.c_str(), "tmpfs", 0, "size=64k") == 0;
  if (!is_mounted_) GTEST_SKIP() << "a tmpfs cannot be mounted here: " << std::strerror(errno);
  {
    auto lock = ProcessLock::acquire(path(), "bank", "cluster.data_dir");
    ASSERT_TRUE(lock) << lock.error().message;
    lock->forget_processes();
  }
  std::ofstream(folder_ + "/rest") << std::string(64 << 10, 'x');
  ASSERT_EQ(std::filesystem::space(folder_).available, 0u);
  auto lock = ProcessLock::acquire(path(), "bank", "cluster.data_dir");
  ASSERT_TRUE(lock) << lock.error().message;
  EXPECT_TRUE(is_ours());
}

}  // namespace
}  // namespace atolldb::test
