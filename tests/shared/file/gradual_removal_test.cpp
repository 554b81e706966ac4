// Removal of large files: their blocks are freed in steps, but never under a reader or another
// name.
#include "shared/file/gradual_removal.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "shared/file/posix_file_system.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/eventually.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kStep = GradualRemoval::kStepBytes;
constexpr uint64_t kBlocksPerStep = kStep / kIoBlockBytes;

/// Records to which sizes files are cut. Thread-safe.
class RecordingCalls : public SystemCalls {
 public:
  std::atomic<bool> is_full = false;        ///< while true, every allocation finds the disk full
  std::atomic<bool> has_leases = true;      ///< false: the file system does not know users of files
  std::function<void(uint64_t)> after_cut;  ///< called with the new size; set before the calls

  int fallocate(int descriptor, uint64_t bytes) override {
    if (!is_full) return SystemCalls::fallocate(descriptor, bytes);
    errno = ENOSPC;
    return -1;
  }
  int ftruncate(int descriptor, uint64_t bytes) override {
    const int answer = SystemCalls::ftruncate(descriptor, bytes);
    {
      const std::lock_guard lock(mutex_);
      sizes_.push_back(bytes);
    }
    if (after_cut) after_cut(bytes);
    return answer;
  }
  int check_sole_user(int descriptor) override {
    if (has_leases) return SystemCalls::check_sole_user(descriptor);
    errno = EINVAL;
    return -1;
  }
  std::vector<uint64_t> sizes() const {
    const std::lock_guard lock(mutex_);
    return sizes_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<uint64_t> sizes_;
};

/// Returns after the thread would have begun to free a file twice.
void wait_for_retries() { std::this_thread::sleep_for(3 * GradualRemoval::kRetryPause); }

class LargeFiles : public testing::Test {
 protected:
  void SetUp() override {
    const UniqueFd file(open(path("probe").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_TRUE(file.is_open());
    if (SystemCalls().check_sole_user(file.get()) != 0) {
      GTEST_SKIP() << folder_.path()
                   << ": this file system has no leases: " << std::strerror(errno);
    }
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  void create(const std::string& name, uint64_t blocks) {
    const auto file = files_.create(path(name), blocks * kIoBlockBytes);
    ASSERT_TRUE(file) << file.error().message;
    const Blocks block(1, 7);
    ASSERT_TRUE(write(**file, (blocks - 1) * kIoBlockBytes, block.bytes()));
  }

  FileFolder folder_;
  RecordingCalls calls_;
  PosixFileSystem files_{{}, calls_};
};

TEST_F(LargeFiles, LoseTheirBlocksInSteps) {
  create("f", 2 * kBlocksPerStep + 1);
  ASSERT_TRUE(files_.remove(path("f")));
  EXPECT_FALSE(*files_.exists(path("f"))) << "the name goes at once";
  ASSERT_TRUE(eventually([&] { return calls_.sizes().size() == 3; }));
  EXPECT_EQ(calls_.sizes(), (std::vector<uint64_t>{kStep + kIoBlockBytes, kIoBlockBytes, 0}));
}

TEST_F(LargeFiles, OfOneStepAreFreedAtOnce) {
  create("at", kBlocksPerStep);
  create("past", kBlocksPerStep + 1);
  ASSERT_TRUE(files_.remove(path("at")));
  ASSERT_TRUE(files_.remove(path("past")));
  ASSERT_TRUE(eventually([&] { return calls_.sizes().size() == 2; }));
  wait_for_retries();
  EXPECT_EQ(calls_.sizes(), (std::vector<uint64_t>{kIoBlockBytes, 0})) << "of the second file";
}

TEST_F(LargeFiles, StayReadableForThoseThatHaveThemOpen) {
  create("f", 2 * kBlocksPerStep);
  const std::vector<std::byte> before = content(files_, path("f"));
  auto reader = files_.open_for_reading(path("f"));
  ASSERT_TRUE(reader);
  ASSERT_TRUE(files_.remove(path("f")));
  wait_for_retries();
  EXPECT_EQ(content(**reader), before);
  EXPECT_TRUE(calls_.sizes().empty());
  reader->reset();
  ASSERT_TRUE(eventually([&] { return calls_.sizes().size() == 2; })) << "after the last reader";
}

TEST_F(LargeFiles, OfOthersAreFreedWhileOneIsOpen) {
  create("open", 2 * kBlocksPerStep);
  create("other", 3 * kBlocksPerStep);
  const auto reader = files_.open_for_reading(path("open"));
  ASSERT_TRUE(reader);
  ASSERT_TRUE(files_.remove(path("open")));
  ASSERT_TRUE(files_.remove(path("other")));
  ASSERT_TRUE(eventually([&] { return calls_.sizes().size() == 3; }));
  EXPECT_EQ(calls_.sizes().back(), 0U);
}

TEST_F(LargeFiles, KeepTheirBlocksUnderAnotherName) {
  create("f", 2 * kBlocksPerStep);
  const std::vector<std::byte> before = content(files_, path("f"));
  ASSERT_TRUE(files_.link(path("f"), path("copy")));
  ASSERT_TRUE(files_.remove(path("f")));
  wait_for_retries();
  EXPECT_TRUE(calls_.sizes().empty());
  EXPECT_EQ(content(files_, path("copy")), before);
}

TEST_F(LargeFiles, KeepTheirBlocksWhenALinkToThemIsRemoved) {
  create("f", 2 * kBlocksPerStep);
  std::filesystem::create_symlink(path("f"), path("symbolic"));
  ASSERT_TRUE(files_.remove(path("symbolic")));
  wait_for_retries();
  EXPECT_TRUE(calls_.sizes().empty());
  EXPECT_EQ(*(*files_.open(path("f")))->size(), 2 * kStep);
}

TEST_F(LargeFiles, AreLeftToTheKernelWithoutLeases) {
  calls_.has_leases = false;
  create("f", 2 * kBlocksPerStep);
  const size_t before = open_descriptors();
  ASSERT_TRUE(files_.remove(path("f")));
  EXPECT_TRUE(eventually([&] { return open_descriptors() == before; }));
  EXPECT_TRUE(calls_.sizes().empty());
}

TEST_F(LargeFiles, MakeRoomWhenTheDiskIsFull) {
  // The reader keeps the thread away from the file until the disk is full.
  create("f", 8 * kBlocksPerStep);
  create("grows", 1);
  const auto grows = files_.open(path("grows"));
  ASSERT_TRUE(grows);
  calls_.after_cut = [&](uint64_t size) { calls_.is_full = size != 0; };
  for (const bool is_growth : {false, true}) {
    if (is_growth) create("f", 8 * kBlocksPerStep);
    auto reader = files_.open_for_reading(path("f"));
    ASSERT_TRUE(reader);
    ASSERT_TRUE(files_.remove(path("f")));
    calls_.is_full = true;
    const auto refused = files_.create(path("new"), kIoBlockBytes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::disk_full) << "the reader keeps the blocks";
    reader->reset();
    if (is_growth) {
      EXPECT_TRUE((*grows)->grow(2 * kIoBlockBytes));
    } else {
      EXPECT_TRUE(files_.create(path("new"), kIoBlockBytes));
      ASSERT_TRUE(files_.remove(path("new")));
    }
    EXPECT_EQ(calls_.sizes().back(), 0U);
  }
}

TEST_F(LargeFiles, AreFreedAtOnceOnRequest) {
  create("open", 2 * kBlocksPerStep);
  create("other", 2 * kBlocksPerStep);
  auto reader = files_.open_for_reading(path("open"));
  ASSERT_TRUE(reader);
  ASSERT_TRUE(files_.remove(path("open")));
  ASSERT_TRUE(files_.remove(path("other")));
  files_.finish_removals();
  EXPECT_EQ(calls_.sizes(), std::vector<uint64_t>{0});
  reader->reset();
  EXPECT_TRUE(eventually([&] { return calls_.sizes().size() == 3; })) << "the thread goes on";
}

TEST_F(LargeFiles, AboveTheLimitAreFreedAtOnce) {
  std::vector<UniqueFd> readers;
  for (size_t number = 0; number <= GradualRemoval::kMaxFiles; ++number) {
    const std::string name = path(std::to_string(number));
    ASSERT_TRUE(files_.create(name, kStep + kIoBlockBytes));
    readers.emplace_back(open(name.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(readers.back().is_open());
  }
  const size_t before = open_descriptors();
  for (size_t number = 0; number <= GradualRemoval::kMaxFiles; ++number) {
    ASSERT_TRUE(files_.remove(path(std::to_string(number))));
  }
  EXPECT_EQ(open_descriptors(), before + GradualRemoval::kMaxFiles);
  readers.clear();
  EXPECT_TRUE(eventually([&] { return calls_.sizes().size() == 2 * GradualRemoval::kMaxFiles; }));
}

TEST_F(LargeFiles, AreFreedWhenTheFileSystemEnds) {
  const size_t before = open_descriptors();
  {
    PosixFileSystem other({}, calls_);
    create("f", 64 * kBlocksPerStep);
    ASSERT_TRUE(other.remove(path("f")));
  }
  EXPECT_EQ(open_descriptors(), before);
}

}  // namespace
}  // namespace atolldb::test
