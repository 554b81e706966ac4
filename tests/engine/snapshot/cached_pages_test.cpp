// The file with the names of cached pages: damage, other nodes, limits; and warming from it.
#include "engine/snapshot/cached_pages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/engine/log/memory_file_system.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kNode = 3;
const std::string kPath = "/data/node3/cached_pages";

CachedPages some_pages(uint64_t count) {
  CachedPages cached;
  cached.cluster_uuid = {1, 2, 3};
  cached.node = kNode;
  cached.snapshot = 12;
  cached.pages.resize(count);
  std::iota(cached.pages.begin(), cached.pages.end(), uint64_t{1} << 40);
  return cached;
}

class CachedPagesTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(files_.make_directory("/data/node3")); }
  void write(const CachedPages& cached) {
    const auto written = write_cached_pages(files_, "/data", cached);
    ASSERT_TRUE(written) << written.error().message;
  }
  Result<std::optional<CachedPages>> read() { return read_cached_pages(files_, "/data", kNode); }
  void expect_read(const CachedPages& expected) {
    const auto cached = read();
    ASSERT_TRUE(cached) << cached.error().message;
    ASSERT_TRUE(*cached);
    EXPECT_EQ(**cached, expected);
  }

  MemoryFileSystem files_;
};

TEST_F(CachedPagesTest, AreReadAsTheyWereWritten) {
  for (const uint64_t count :
       {uint64_t{0}, uint64_t{1}, uint64_t{504}, uint64_t{505}, uint64_t{5000}, kMaxCachedPages}) {
    const CachedPages cached = some_pages(count);
    write(cached);
    expect_read(cached);
  }
  EXPECT_EQ(files_.syncs, 0u) << "the file is only a hint";
  EXPECT_EQ(files_.paths(), std::vector{kPath});
}

TEST_F(CachedPagesTest, AreAtMostAMillion) {
  EXPECT_DEATH(write(some_pages(kMaxCachedPages + 1)), "kMaxCachedPages");
}

TEST_F(CachedPagesTest, AreNothingIfTheFileIsMissing) {
  const auto cached = read();
  ASSERT_TRUE(cached);
  EXPECT_FALSE(*cached);
}

TEST_F(CachedPagesTest, AreThoseBeforeIfAWriteFailsAndALeftoverIsReplaced) {
  const CachedPages before = some_pages(100);
  write(before);
  for (uint64_t changes = 0; changes < 3; ++changes) {
    files_.changes_left = changes;
    EXPECT_FALSE(write_cached_pages(files_, "/data", some_pages(700)));
    files_.changes_left = UINT64_MAX;
    expect_read(before);
  }
  write(some_pages(7));
  expect_read(some_pages(7));
}

TEST_F(CachedPagesTest, AreNotReadFromADamagedFile) {
  const CachedPages cached = some_pages(300);
  write(cached);
  constexpr uint64_t kUsed = 64 + 300 * 8;
  std::mt19937_64 random(seed());
  for (int round = 0; round < 500; ++round) {
    std::byte& damaged = files_.bytes(kPath)[random() % kUsed];
    const auto flip = static_cast<std::byte>(1 << random() % 8);
    damaged ^= flip;
    const auto refused = read();
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ExitCode::corruption);
    EXPECT_TRUE(refused.error().message.starts_with(kPath)) << refused.error().message;
    damaged ^= flip;
  }
  for (const uint64_t bytes : {uint64_t{0}, uint64_t{1}, uint64_t{63}, uint64_t{64}, kUsed - 1}) {
    files_.bytes(kPath).resize(bytes);
    ASSERT_FALSE(read()) << bytes;
  }
}

TEST_F(CachedPagesTest, AreNotReadFromAFileOfAnotherNode) {
  write(some_pages(3));
  ASSERT_TRUE(files_.make_directory("/data/node4"));
  ASSERT_TRUE(files_.rename(kPath, "/data/node4/cached_pages"));
  const auto refused = read_cached_pages(files_, "/data", 4);
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().message.ends_with("belongs to another node"));
}

uint64_t word(uint32_t number) { return NumberedPages::pointer(number).word(); }

TEST(WarmedCache, HasThePagesBeforeTheyAreRequested) {
  NumberedPages pages(40);
  TestCache test(pages.files(), 64, 1);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(3), 5, buffer.bytes().data()), 5u);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(3), 5, buffer.bytes().data()), 5u)
      << "they are there already";
  EXPECT_EQ(test.cache.statistics().frames_in_use, 5u);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(6), 4, buffer.bytes().data()), 4u)
      << "two are there already";
  EXPECT_EQ(test.cache.statistics().frames_in_use, 7u);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(39), 9, buffer.bytes().data()), 2u)
      << "the file ends there";
  SnapshotReader reader(test.cache, 0);
  for (const uint32_t number : {3u, 4u, 5u, 6u, 7u, 8u, 9u, 39u, 40u}) {
    const PageHeader* page = nullptr;
    ASSERT_EQ(reader.get(NumberedPages::pointer(number), page), Status::ok);
    ASSERT_TRUE(NumberedPages::is_page(page, number));
  }
  EXPECT_EQ(test.cache.statistics().misses, 0u);
}

TEST(WarmedCache, EvictsNothingAndIsDoneWhenItIsFull) {
  NumberedPages pages(100);
  TestCache test(pages.files(), 32, 1);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  uint32_t added = 0;
  uint32_t number = 1;
  for (;; number += kPagesPerRead) {
    const auto more =
        test.cache.warm(NumberedPages::pointer(number), kPagesPerRead, buffer.bytes().data());
    if (!more) break;
    added += *more;
  }
  EXPECT_EQ(added, 32u);
  EXPECT_EQ(number, 33u);
  EXPECT_EQ(test.cache.statistics().evictions, 0u);
  EXPECT_EQ(test.cache.statistics().frames_in_use, 32u);
  SnapshotReader reader(test.cache, 0);
  const PageHeader* page = nullptr;
  ASSERT_EQ(reader.get(NumberedPages::pointer(90), page), Status::ok) << "readers evict its pages";
}

TEST(WarmedCache, OmitsPagesThatCannotBeReadWithoutAWord) {
  NumberedPages pages(12);
  ASSERT_TRUE(pages.file_system().corrupt(snapshot_file_path("/data", 0, 1),
                                          5 * kPageBytes + kPageBytes / 2, 1));
  TestCache test(pages.files(), 32, 1);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(5), 1, buffer.bytes().data()), 0u);
  EXPECT_EQ(test.cache.warm(SnapshotPointer::make(9, 0, 1), 4, buffer.bytes().data()), 0u)
      << "a snapshot that was deleted";
  EXPECT_EQ(test.last_error, "");
  ASSERT_TRUE(pages.files().open_only({}));
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(1), 4, buffer.bytes().data()), 0u);
  EXPECT_EQ(test.cache.statistics().frames_in_use, 0u);
}

TEST(WarmedCache, NamesItsPagesThoseInUseFirst) {
  NumberedPages pages(40);
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  const PageHeader* page = nullptr;
  // The read of page 1 also reads pages 2 to 16 ahead. Only pages that are requested three times
  // have their reference bit set.
  for (const uint32_t number : {1u, 9u, 12u}) {
    for (int time = 0; time < 3; ++time) {
      reader.leave();
      ASSERT_EQ(reader.get(NumberedPages::pointer(number), page), Status::ok);
    }
  }
  const auto names = test.cache.cached_pages(1000);
  ASSERT_EQ(names.size(), 16u);
  EXPECT_EQ(names[0], word(1));
  EXPECT_EQ(names[1], word(9));
  EXPECT_EQ(names[2], word(12));
  EXPECT_EQ(names[3], word(2));
  EXPECT_EQ(test.cache.cached_pages(2), (std::vector{word(1), word(9)}));
  EXPECT_TRUE(test.cache.cached_pages(0).empty());
}

}  // namespace
}  // namespace atolldb::test
