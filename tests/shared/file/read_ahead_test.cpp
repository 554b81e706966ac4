// Files that are read ahead have the same bytes and errors as without it.
#include "shared/file/read_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "shared/file/io_watch.h"
#include "shared/file/posix_file_system.h"
#include "tests/shared/file/file_test_support.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kChunkBlocks = ReadAhead::kChunkBytes / kIoBlockBytes;

/// A file that fails to read the bytes at one offset.
class BrokenFile : public ForwardingFile {
 public:
  BrokenFile(std::unique_ptr<File> below, uint64_t broken_at)
      : ForwardingFile(std::move(below)), broken_at_(broken_at) {}
  Result<uint64_t> read(uint64_t offset, std::span<std::byte> into) const override {
    if (offset <= broken_at_ && broken_at_ < offset + into.size()) {
      return make_error(ExitCode::durability, "read: injected");
    }
    return below().read(offset, into);
  }

 private:
  uint64_t broken_at_;
};

class ReadAheadTest : public testing::TestWithParam<BatchReader::Method> {
 protected:
  /// Writes a file of random blocks and returns them.
  Blocks make_file(const std::string& name, uint64_t blocks) {
    Blocks content(blocks, random_);
    auto file = files_.create(path(name), blocks * kIoBlockBytes);
    CHECK(file.has_value());
    CHECK(write(**file, 0, content.bytes()).has_value());
    CHECK((*file)->sync().has_value());
    return content;
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
  std::unique_ptr<File> open(FileSystem& files, const std::string& name) const {
    auto file = files.open_for_reading(path(name));
    CHECK(file.has_value());
    return std::move(*file);
  }
  /// Reads, and compares with the content. Returns the number of bytes.
  uint64_t read(const File& file, const Blocks& content, uint64_t offset, uint64_t bytes) {
    const auto into = buffer_.bytes().first(bytes);
    const auto count = file.read(offset, into);
    EXPECT_TRUE(count.has_value());
    const uint64_t size = content.bytes().size();
    const uint64_t expected = offset >= size ? 0 : std::min(bytes, size - offset);
    EXPECT_EQ(*count, expected) << "at " << offset << " of " << size;
    EXPECT_TRUE(std::ranges::equal(into.first(std::min(*count, expected)),
                                   content.bytes().subspan(std::min(offset, size), expected)))
        << "at " << offset << " of " << size;
    return *count;
  }

  static constexpr uint64_t kBufferBlocks = 5 * kChunkBlocks;
  std::mt19937_64 random_{seed()};
  FileFolder folder_;
  PosixFileSystem files_{{}};
  Blocks buffer_{kBufferBlocks};
};

TEST_P(ReadAheadTest, ReturnsTheBytesOfFilesOfAnySize) {
  ReadAhead ahead(GetParam());
  ReadAheadFileSystem files(files_, ahead);
  for (const uint64_t blocks :
       {uint64_t{1}, kChunkBlocks, kChunkBlocks + 1, 4 * kChunkBlocks, 9 * kChunkBlocks + 3}) {
    const std::string name = "f" + std::to_string(blocks);
    const Blocks content = make_file(name, blocks);
    for (const uint64_t at_once : {kChunkBlocks, kChunkBlocks + 7, 4 * kChunkBlocks}) {
      const auto file = open(files, name);
      uint64_t offset = 0;
      while (const uint64_t count = read(*file, content, offset, at_once * kIoBlockBytes)) {
        offset += count;
      }
      EXPECT_EQ(offset, blocks * kIoBlockBytes);
    }
  }
}

TEST_P(ReadAheadTest, ReturnsTheBytesOfAnyPlace) {
  ReadAhead ahead(GetParam());
  ReadAheadFileSystem files(files_, ahead);
  const Blocks first = make_file("first", 11 * kChunkBlocks);
  const Blocks second = make_file("second", 6 * kChunkBlocks);
  std::array<std::unique_ptr<File>, 2> open_files = {open(files, "first"), open(files, "second")};
  uint64_t offset = 0;
  size_t chosen = 0;
  for (uint64_t i = 0; i < rounds(200, 2000); ++i) {
    // Mostly goes on where the last read has ended.
    if (random_() % 4 == 0) chosen = random_() % 2;
    const Blocks& content = chosen == 0 ? first : second;
    const uint64_t blocks = content.bytes().size() / kIoBlockBytes;
    if (random_() % 4 == 0) offset = random_() % (blocks + 1) * kIoBlockBytes;
    if (random_() % 20 == 0) ++offset;
    const uint64_t bytes = 1 + random_() % (kBufferBlocks * kIoBlockBytes);
    offset += read(*open_files[chosen], content, offset, bytes);
    // A file may be closed while its bytes are read.
    if (random_() % 10 == 0) open_files[chosen] = open(files, chosen == 0 ? "first" : "second");
  }
}

TEST_P(ReadAheadTest, HasNoReadInProgressWhileItsThreadWaits) {
  IoWatch watch;
  WatchedFileSystem watched(std::make_unique<PosixFileSystem>(FileWarning{}), watch);
  ReadAhead ahead(GetParam());
  ReadAheadFileSystem files(watched, ahead);
  const Blocks content = make_file("f", 12 * kChunkBlocks);
  const auto file = open(files, "f");
  const uint64_t size = content.bytes().size();
  for (uint64_t offset = 0; offset < size; offset += ReadAhead::kChunkBytes) {
    EXPECT_EQ(read(*file, content, offset, ReadAhead::kChunkBytes), ReadAhead::kChunkBytes);
    if (offset + ReadAhead::kChunks * ReadAhead::kChunkBytes < size) {
      EXPECT_NE(ahead.pending(), 0u) << "the read has submitted another one";
    }
    if (random_() % 2 == 0) continue;
    ahead.await_all();
    EXPECT_EQ(ahead.pending(), 0u);
    EXPECT_FALSE(watch.oldest().has_value());
  }
}

TEST_P(ReadAheadTest, ReturnsTheErrorOfTheBytesThatAreAskedFor) {
  const Blocks content = make_file("f", 8 * kChunkBlocks);
  ReadAhead ahead(GetParam());
  const BrokenFile file(open(files_, "f"), 3 * ReadAhead::kChunkBytes + 5);
  const auto into = buffer_.bytes().first(ReadAhead::kChunkBytes);
  for (uint64_t chunk = 0; chunk < 3; ++chunk) {
    const auto count = ahead.read(file, chunk * ReadAhead::kChunkBytes, into);
    ASSERT_TRUE(count.has_value()) << count.error().message;
    EXPECT_EQ(*count, ReadAhead::kChunkBytes);
  }
  const auto broken = ahead.read(file, 3 * ReadAhead::kChunkBytes, into);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().message, "read: injected");
  // What follows can be read.
  const auto after = ahead.read(file, 4 * ReadAhead::kChunkBytes, into);
  ASSERT_TRUE(after.has_value());
  EXPECT_TRUE(std::ranges::equal(
      into, content.bytes().subspan(4 * ReadAhead::kChunkBytes, ReadAhead::kChunkBytes)));
  ahead.stop(file);
}

INSTANTIATE_TEST_SUITE_P(Methods, ReadAheadTest,
                         testing::Values(BatchReader::Method::automatic,
                                         BatchReader::Method::threads));

}  // namespace
}  // namespace atolldb::test
