// Reads in progress together: through io_uring, and with threads.
#include "shared/file/batch_reader.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <map>
#include <mutex>
#include <set>

#include "shared/file/io_watch.h"
#include "shared/file/posix_file_system.h"
#include "tests/shared/file/faulty_calls.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kFileBlocks = 64;

/// A file whose read at `failing_offset` fails. Thread: any number of readers.
class FaultyFile : public ForwardingFile {
 public:
  explicit FaultyFile(std::unique_ptr<File> below) : ForwardingFile(std::move(below)) {}
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    if (offset == failing_offset) return make_error(ExitCode::durability, "read: injected");
    return below().read(offset, into);
  }
  uint64_t failing_offset = UINT64_MAX;
};

class BatchReaderTest : public testing::TestWithParam<BatchReader::Method> {
 protected:
  BatchReaderTest() {
    auto file = files_.create(path(), kFileBlocks * kIoBlockBytes);
    CHECK(file.has_value());
    CHECK(write(**file, 0, content_.bytes()).has_value());
    CHECK((*file)->sync().has_value());
  }
  static Result<void> write(File& file, uint64_t offset, std::span<const std::byte> bytes) {
    return file.write(offset, {{bytes}});
  }
  std::string path() const { return folder_.path() + "/f"; }
  std::unique_ptr<File> open(FileSystem& files) const {
    auto file = files.open_for_reading(path());
    CHECK(file.has_value());
    return std::move(*file);
  }
  bool is_block(std::span<const std::byte> bytes, uint64_t block) const {
    return std::ranges::equal(bytes, content_.block(block));
  }

  std::mt19937_64 random_{seed()};
  FileFolder folder_;
  PosixFileSystem files_{{}};
  Blocks content_{kFileBlocks, random_};
};

TEST_P(BatchReaderTest, RandomReadsReturnTheRightBytesWhateverTheirOrder) {
  const auto file = open(files_);
  for (const uint32_t depth : {1u, 2u, 7u, 64u}) {
    const auto reader = BatchReader::create(depth, GetParam());
    Blocks buffers(2 * depth);
    std::map<uint64_t, uint64_t> blocks;  // block of each pending read, by tag
    std::vector<uint64_t> free;
    for (uint64_t i = 0; i < depth; ++i) free.push_back(i);
    const auto finish = [&] {
      const BatchReader::Done done = reader->wait();
      ASSERT_TRUE(done.bytes) << done.bytes.error().message;
      ASSERT_EQ(*done.bytes, 2 * kIoBlockBytes);
      ASSERT_TRUE(blocks.contains(done.tag)) << "a tag came twice";
      EXPECT_TRUE(is_block(buffers.block(2 * done.tag), blocks[done.tag]));
      EXPECT_TRUE(is_block(buffers.block(2 * done.tag + 1), blocks[done.tag] + 1));
      blocks.erase(done.tag);
      free.push_back(done.tag);
    };
    for (int i = 0; i < 300; ++i) {
      if (random_() % 4 == 0) reader->start();
      while (free.empty() || (!blocks.empty() && random_() % 3 == 0)) finish();
      const uint64_t tag = free.back();
      free.pop_back();
      blocks[tag] = random_() % (kFileBlocks - 1);
      ASSERT_TRUE(
          reader->submit(*file, blocks[tag] * kIoBlockBytes,
                         buffers.bytes().subspan(2 * tag * kIoBlockBytes, 2 * kIoBlockBytes), tag));
      ASSERT_EQ(reader->pending(), blocks.size());
    }
    while (reader->pending() != 0) finish();
    EXPECT_TRUE(blocks.empty());
  }
}

TEST_P(BatchReaderTest, AFullQueueRefusesAReadAndTakesOneAfterAWait) {
  const auto file = open(files_);
  const auto reader = BatchReader::create(3, GetParam());
  Blocks buffers(4);
  const auto submit = [&](uint64_t block) {
    return reader->submit(*file, block * kIoBlockBytes,
                          buffers.bytes().subspan(block * kIoBlockBytes, kIoBlockBytes), block);
  };
  for (uint64_t block = 0; block < 3; ++block) EXPECT_TRUE(submit(block));
  EXPECT_FALSE(submit(3));
  EXPECT_EQ(reader->pending(), 3u);
  static_cast<void>(reader->wait());
  EXPECT_TRUE(submit(3));
  std::set<uint64_t> tags;
  while (reader->pending() != 0) tags.insert(reader->wait().tag);
  EXPECT_EQ(tags.size(), 3u);
  EXPECT_TRUE(is_block(buffers.block(3), 3));
}

TEST_P(BatchReaderTest, AReadAtTheEndOfTheFileIsShort) {
  const auto file = open(files_);
  const auto reader = BatchReader::create(2, GetParam());
  Blocks buffers(6);
  ASSERT_TRUE(reader->submit(*file, (kFileBlocks - 1) * kIoBlockBytes,
                             buffers.bytes().first(3 * kIoBlockBytes), 0));
  ASSERT_TRUE(reader->submit(*file, (kFileBlocks + 8) * kIoBlockBytes,
                             buffers.bytes().last(3 * kIoBlockBytes), 1));
  for (int i = 0; i < 2; ++i) {
    const BatchReader::Done done = reader->wait();
    ASSERT_TRUE(done.bytes);
    EXPECT_EQ(*done.bytes, done.tag == 0 ? uint64_t{kIoBlockBytes} : 0u);
  }
  EXPECT_TRUE(is_block(buffers.block(0), kFileBlocks - 1));
}

TEST_P(BatchReaderTest, AFailedReadIsReportedAndTheOthersSucceed) {
  FaultyFile file(open(files_));
  file.failing_offset = kIoBlockBytes;
  const auto reader = BatchReader::create(3, GetParam());
  Blocks buffers(3);
  for (uint64_t block = 0; block < 3; ++block) {
    ASSERT_TRUE(reader->submit(file, block * kIoBlockBytes,
                               buffers.bytes().subspan(block * kIoBlockBytes, kIoBlockBytes),
                               block));
  }
  for (int i = 0; i < 3; ++i) {
    const BatchReader::Done done = reader->wait();
    if (done.tag == 1) {
      ASSERT_FALSE(done.bytes);
      EXPECT_EQ(done.bytes.error().message, "read: injected");
    } else {
      ASSERT_TRUE(done.bytes);
      EXPECT_TRUE(is_block(buffers.block(done.tag), done.tag));
    }
  }
}

TEST_P(BatchReaderTest, AKernelThatRefusesDirectReadsIsReadThroughTheCache) {
  FaultyCalls calls;
  calls.refuse_direct_open = true;
  PosixFileSystem files{{}, calls};
  const auto file = open(files);
  EXPECT_LT(file->begin_raw_read().descriptor, 0);
  const auto reader = BatchReader::create(1, GetParam());
  Blocks buffer(1);
  ASSERT_TRUE(reader->submit(*file, 5 * kIoBlockBytes, buffer.bytes(), 0));
  ASSERT_TRUE(reader->wait().bytes);
  EXPECT_TRUE(is_block(buffer.block(0), 5));
}

TEST_P(BatchReaderTest, ReadsInProgressAreNotedUntilTheyAreReturned) {
  IoWatch watch;
  WatchedFileSystem files(std::make_unique<PosixFileSystem>(FileWarning{}), watch);
  const auto file = open(files);
  const File::RawRead probe = file->begin_raw_read();
  const bool is_raw = probe.descriptor >= 0;
  EXPECT_EQ(watch.oldest().has_value(), is_raw);
  file->end_raw_read(probe);
  EXPECT_FALSE(watch.oldest().has_value());
  const auto reader = BatchReader::create(1, GetParam());
  Blocks buffer(1);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(reader->submit(*file, 0, buffer.bytes(), 0));
    // A thread may have ended its read already. A read in the ring is recorded until `wait` returns
    // it.
    if (is_raw && std::string(reader->method()) == "io_uring") {
      ASSERT_TRUE(watch.oldest().has_value());
      EXPECT_EQ(watch.oldest()->operation, IoOperation::read);
      EXPECT_EQ(watch.oldest()->path, path());
    }
    static_cast<void>(reader->wait());
    EXPECT_FALSE(watch.oldest().has_value());
  }
}

TEST_P(BatchReaderTest, ItsEndWaitsForReadsInProgress) {
  const auto file = open(files_);
  for (int i = 0; i < 20; ++i) {
    Blocks buffers(8);
    const auto reader = BatchReader::create(8, GetParam());
    for (uint64_t block = 0; block < 8; ++block) {
      ASSERT_TRUE(reader->submit(*file, block * kIoBlockBytes,
                                 buffers.bytes().subspan(block * kIoBlockBytes, kIoBlockBytes),
                                 block));
    }
    if (i % 2 == 0) reader->start();
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, BatchReaderTest,
                         testing::Values(BatchReader::Method::automatic,
                                         BatchReader::Method::threads));

TEST(BatchReaderMethodTest, ThreadsAreUsedOnRequest) {
  EXPECT_STREQ(BatchReader::create(4, BatchReader::Method::threads)->method(), "threads");
}

}  // namespace
}  // namespace atolldb::test
