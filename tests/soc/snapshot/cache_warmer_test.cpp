// Warming of a node's cache: what is noted, what is read again, and which files are ignored.
#include "soc/snapshot/cache_warmer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

#include "engine/snapshot/cached_pages.h"
#include "tests/engine/snapshot/cache_rules.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kSnapshot = 1;  // id of the snapshot of NumberedPages

/// A node with one snapshot of 64 pages. Each incarnation has an empty cache of 48 frames.
class CacheWarmerTest : public testing::Test {
 protected:
  static constexpr uint32_t kFrames = 48;

  void begin() {
    warmer_.reset();
    cache_ = std::make_unique<TestCache>(pages_.files(), kFrames, 1);
    CacheWarmerSettings settings;
    settings.file_system = &pages_.file_system();
    settings.cache = &cache_->cache;
    settings.cluster_uuid = uuid_;
    settings.directory = "/data";
    warmer_ = std::make_unique<CacheWarmer>(settings, make_silent_logger("warm"));
    warmer_->start();
  }
  void use(const std::vector<uint32_t>& numbers) {
    SnapshotReader reader(cache_->cache, 0);
    for (const uint32_t number : numbers) {
      const PageHeader* page = nullptr;
      ASSERT_EQ(reader.get(NumberedPages::pointer(number), page), Status::ok);
    }
  }
  /// Returns the content of the file with the names of cached pages, or an empty list without a
  /// file.
  CachedPages noted() {
    auto cached = read_cached_pages(pages_.file_system(), "/data", 0);
    return cached && *cached ? **cached : CachedPages{};
  }
  void note(CachedPages cached) {
    ASSERT_TRUE(write_cached_pages(pages_.file_system(), "/data", cached));
  }
  void await_note(uint32_t snapshot) {
    while (noted().snapshot != snapshot) std::this_thread::yield();
  }
  /// Begins an incarnation, and waits for the end of its warming.
  void begin_warm(uint32_t snapshot) {
    begin();
    warmer_->note_snapshot(snapshot);
    while (!warmer_->progress().is_over) std::this_thread::yield();
  }
  static std::vector<uint64_t> sorted(std::vector<uint64_t> pages) {
    std::ranges::sort(pages);
    return pages;
  }

  ClusterUuid uuid_ = {7};
  NumberedPages pages_{64};
  std::unique_ptr<TestCache> cache_;
  std::unique_ptr<CacheWarmer> warmer_;
};

TEST_F(CacheWarmerTest, TheNextIncarnationHasThePagesOfTheLastOne) {
  begin_warm(kSnapshot);
  use({40, 60});
  const std::vector<uint64_t> used = sorted(cache_->cache.cached_pages(1000));
  EXPECT_EQ(used.size(), 21u) << "with the pages that were read ahead";
  warmer_->stop();
  EXPECT_EQ(sorted(noted().pages), used);
  EXPECT_EQ(noted().cluster_uuid, uuid_);

  begin_warm(kSnapshot + 1);
  EXPECT_EQ(sorted(cache_->cache.cached_pages(1000)), used);
  EXPECT_EQ(warmer_->progress().to_warm, used.size());
  use({40, 50, 60});
  EXPECT_EQ(cache_->cache.statistics().misses, 0u);
}

TEST_F(CacheWarmerTest, NothingIsReadBeforeASnapshotIsReadable) {
  CachedPages cached = {uuid_, 0, kSnapshot, {NumberedPages::pointer(1).word()}};
  note(cached);
  begin();
  warmer_->stop();
  EXPECT_EQ(warmer_->progress().to_warm, 0u);
  EXPECT_EQ(noted(), cached) << "an incarnation that was not warm keeps the file";
}

TEST_F(CacheWarmerTest, TheFileIsWrittenAfterEachFurtherSnapshot) {
  begin_warm(kSnapshot);
  use({1});
  warmer_->note_snapshot(kSnapshot + 5);
  await_note(kSnapshot + 5);
  EXPECT_EQ(noted().pages.size(), 16u);
}

TEST_F(CacheWarmerTest, FilesOfOtherDataAndOfLaterSnapshotsAreIgnored) {
  const std::vector<uint64_t> page = {NumberedPages::pointer(1).word()};
  for (const CachedPages& cached :
       {CachedPages{{8}, 0, kSnapshot, page}, CachedPages{uuid_, 0, kSnapshot + 1, page}}) {
    warmer_.reset();
    note(cached);
    begin_warm(kSnapshot);
    EXPECT_EQ(warmer_->progress().to_warm, 0u);
    EXPECT_EQ(noted(), cached) << "the next snapshot replaces it";
    EXPECT_EQ(cache_->cache.statistics().frames_in_use, 0u);
  }
}

TEST_F(CacheWarmerTest, ADamagedFileIsIgnoredAndReplaced) {
  note({uuid_, 0, kSnapshot, {NumberedPages::pointer(1).word()}});
  ASSERT_TRUE(pages_.file_system().corrupt("/data/node0/cached_pages", 70, 1));
  begin_warm(kSnapshot);
  EXPECT_EQ(warmer_->progress().to_warm, 0u);
  warmer_->stop();
  EXPECT_EQ(noted().snapshot, kSnapshot);
  EXPECT_TRUE(noted().pages.empty());
}

TEST_F(CacheWarmerTest, PagesOfDeletedSnapshotsAreOmitted) {
  note({uuid_,
        0,
        kSnapshot + 3,
        {SnapshotPointer::make(kSnapshot + 3, 0, 1).word(), NumberedPages::pointer(5).word(),
         NumberedPages::pointer(60000).word(), NumberedPages::pointer(6).word()}});
  begin_warm(kSnapshot + 3);
  EXPECT_EQ(warmer_->progress().to_warm, 4u);
  EXPECT_EQ(warmer_->progress().warmed, 2u);
  EXPECT_EQ(cache_->last_error, "");
}

TEST_F(CacheWarmerTest, AFullCacheEndsTheWarming) {
  CachedPages cached = {uuid_, 0, kSnapshot, {}};
  for (uint32_t number = 64; number >= 1; --number) {
    cached.pages.push_back(NumberedPages::pointer(number).word());
  }
  note(cached);
  begin_warm(kSnapshot);
  EXPECT_EQ(warmer_->progress().to_warm, 64u);
  EXPECT_EQ(warmer_->progress().warmed, kFrames);
  EXPECT_EQ(cache_->cache.statistics().evictions, 0u);
}

TEST_F(CacheWarmerTest, FilesAreClosedWhileItReadsNone) {
  CachedPages cached = {uuid_, 0, kSnapshot, {}};
  for (uint32_t number = 1; number <= 64; number += 2) {
    cached.pages.push_back(NumberedPages::pointer(number).word());
  }
  note(cached);
  begin();
  warmer_->note_snapshot(kSnapshot);
  const auto closed = warmer_->while_paused([&] { return pages_.files().open_only({}); });
  EXPECT_TRUE(closed);
  while (!warmer_->progress().is_over) std::this_thread::yield();
  warmer_->note_snapshot(kSnapshot + 1);
  await_note(kSnapshot + 1);
  EXPECT_LE(warmer_->progress().warmed, 32u);
}

}  // namespace
}  // namespace atolldb::test
