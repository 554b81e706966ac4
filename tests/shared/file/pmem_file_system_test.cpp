// Tests of the path of syncs. Syncs bypass the kernel on persistent memory, and use the kernel
// elsewhere.
#include "shared/file/pmem_file_system.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/shared/file/faulty_calls.h"
#include "tests/shared/file/file_test_support.h"

namespace atolldb::test {
namespace {

class PmemFiles : public testing::Test {
 protected:
  void force(const char* granularity) { setenv("PMEM2_FORCE_GRANULARITY", granularity, 1); }
  void TearDown() override { unsetenv("PMEM2_FORCE_GRANULARITY"); }

  std::unique_ptr<File> create(uint64_t blocks) {
    auto file = files_.create(folder_.path() + "/f", blocks * kIoBlockBytes);
    EXPECT_TRUE(file) << file.error().message;
    return file ? std::move(*file) : nullptr;
  }

  FileFolder folder_;
  FaultyCalls calls_;
  std::vector<std::string> warnings_;
  PmemFileSystem files_{[this](const std::string& text) { warnings_.push_back(text); }, calls_};
};

TEST_F(PmemFiles, DrainStoresWithoutTheKernelAtCacheLineGranularity) {
  for (const char* granularity : {"cache_line", "byte"}) {
    force(granularity);
    PmemFileSystem files({}, calls_);
    EXPECT_EQ(files.describe(), "pmem, no file yet");
    const std::string path = folder_.path() + "/" + granularity;
    auto file = files.create(path, 16 * kIoBlockBytes);
    ASSERT_TRUE(file) << file.error().message;
    for (uint64_t index = 0; index < 16; ++index) {
      ASSERT_TRUE(write(**file, index * kIoBlockBytes, Blocks(1, 7).bytes()));
      ASSERT_TRUE((*file)->sync());
    }
    EXPECT_EQ(files.drains(), 16U);
    EXPECT_EQ(files.kernel_syncs(), 1U) << "once, for size and blocks of the new file";
    EXPECT_EQ(files.describe(),
              "pmem, " + std::string(granularity == std::string("byte") ? "byte" : "cache-line") +
                  " granularity: non-temporal copies and drain");
    EXPECT_TRUE(std::ranges::equal(content(files, path), Blocks(16, 7).bytes()));
  }
  EXPECT_EQ(calls_.writes, 0U) << "no write goes through the kernel";
}

TEST_F(PmemFiles, GoThroughTheKernelAtPageGranularityAndSaySoOnce) {
  force("page");
  const auto file = create(4);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(write(*file, 0, Blocks(4, 7).bytes()));
    ASSERT_TRUE(file->sync());
  }
  EXPECT_EQ(files_.drains(), 0U);
  EXPECT_EQ(files_.kernel_syncs(), 3U);
  EXPECT_EQ(files_.describe(),
            "pmem, page granularity (no persistent memory): copies and fdatasync");
  ASSERT_TRUE(files_.open(folder_.path() + "/f"));
  ASSERT_EQ(warnings_.size(), 1U);
  EXPECT_NE(warnings_[0].find("is not on persistent memory"), std::string::npos);
}

TEST_F(PmemFiles, AreReadThroughAMappingOnPersistentMemoryOnly) {
  for (const char* granularity : {"cache_line", "page"}) {
    force(granularity);
    PmemFileSystem files({}, calls_);
    const std::string path = folder_.path() + "/" + granularity;
    auto writer = files.create(path, 4 * kIoBlockBytes);
    ASSERT_TRUE(writer) << writer.error().message;
    ASSERT_TRUE(write(**writer, kIoBlockBytes, Blocks(1, 7).bytes()));
    auto reader = files.open_for_reading(path);
    ASSERT_TRUE(reader) << reader.error().message;
    std::vector<std::byte> page(kIoBlockBytes);
    ASSERT_EQ((*reader)->read(kIoBlockBytes, page).value(), kIoBlockBytes);
    EXPECT_TRUE(std::ranges::equal(page, Blocks(1, 7).bytes()));
    ASSERT_TRUE(write(**writer, 0, Blocks(1, 9).bytes()));
    ASSERT_EQ((*reader)->read(0, page).value(), kIoBlockBytes);
    EXPECT_TRUE(std::ranges::equal(page, Blocks(1, 9).bytes())) << "a later write is seen";
    EXPECT_EQ(files.mapped_reads(), granularity == std::string("page") ? 0U : 2U);
  }
}

TEST_F(PmemFiles, AreReadPastTheirMappingAfterTheyHaveGrown) {
  force("cache_line");
  auto writer = create(1);
  auto reader = files_.open_for_reading(folder_.path() + "/f");
  ASSERT_TRUE(reader) << reader.error().message;
  ASSERT_TRUE(writer->grow(2 * kIoBlockBytes));
  ASSERT_TRUE(write(*writer, kIoBlockBytes, Blocks(1, 7).bytes()));
  std::vector<std::byte> both(2 * kIoBlockBytes);
  ASSERT_EQ((*reader)->read(0, both).value(), 2 * kIoBlockBytes);
  EXPECT_TRUE(std::ranges::equal(std::span(both).subspan(kIoBlockBytes), Blocks(1, 7).bytes()));
  EXPECT_EQ((*reader)->read(kIoBlockBytes, both).value(), kIoBlockBytes) << "to the end only";
  EXPECT_EQ(files_.mapped_reads(), 0U);
  ASSERT_EQ((*reader)->read(0, std::span(both).first(kIoBlockBytes)).value(), kIoBlockBytes);
  EXPECT_EQ(files_.mapped_reads(), 1U) << "up to the end of the mapping";
}

TEST_F(PmemFiles, AreDescribedByTheCoarsestOfThem) {
  force("cache_line");
  create(1);
  force("page");
  ASSERT_TRUE(files_.open(folder_.path() + "/f"));
  EXPECT_NE(files_.describe().find("page granularity"), std::string::npos);
}

TEST_F(PmemFiles, AnswerAFailedSyncEverAfter) {
  force("page");
  calls_.error = EIO;
  calls_.fail_sync = 2;
  const auto file = create(1);
  ASSERT_TRUE(file->sync());
  const auto synced = file->sync();
  ASSERT_FALSE(synced);
  EXPECT_EQ(synced.error().code, ExitCode::durability);
  EXPECT_EQ(file->sync().error().message, synced.error().message);
  EXPECT_EQ(write(*file, 0, Blocks(1).bytes()).error().message, synced.error().message);
  EXPECT_EQ(calls_.syncs, 2U);
}

TEST_F(PmemFiles, LeaveNothingBehindWhenSpaceIsShort) {
  calls_.allocation_error = ENOSPC;
  const auto file = files_.create(folder_.path() + "/f", 1 << 20);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code, ExitCode::disk_full);
  EXPECT_FALSE(files_.exists(folder_.path() + "/f").value());
}

}  // namespace
}  // namespace atolldb::test
