// Lent pages (R81): the snapshot cache uses free pages of the volatile pool, and returns them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <random>

#include "tests/engine/snapshot/lent_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

bool reads_page(SnapshotReader& reader, uint32_t number) {
  const PageHeader* page = nullptr;
  const bool is_read = reader.get(NumberedPages::pointer(number), page) == Status::ok &&
                       NumberedPages::is_page(page, number);
  reader.leave();
  return is_read;
}

TEST(LentPages, AreNotReturnedWhileTheyAreRead) {
  EXPECT_EQ(a_lent_page_is_not_returned_while_it_is_read(), "");
}

TEST(LentPages, HoldWhatTheOwnFramesDoNotUntilThePoolKeepsTheRest) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  const uint64_t all = test.pool().free_count();
  const uint64_t kept = test.pool().kept_pages();
  for (uint32_t number = 1; number <= test.pages.count(); ++number) {
    ASSERT_TRUE(reads_page(reader, number)) << number;
    ASSERT_GE(test.pool().free_count(), kept);
    ASSERT_EQ(test.pool().free_count() + test.pool().lent_count(), all);
  }
  const NodeShared& node = *test.cluster.view().shared[0];
  EXPECT_EQ(node.pages_free.load(std::memory_order_relaxed), all) << "lent pages count as free";
  EXPECT_FALSE(test.pool().can_lend());
  EXPECT_EQ(test.pool().pages_to_reclaim(), 0u);
  const SnapshotCache::Statistics statistics = test.statistics();
  EXPECT_EQ(statistics.lent_frames, test.pool().lent_count());
  EXPECT_EQ(statistics.frames, 8 + statistics.lent_frames);
  EXPECT_LE(test.pool().free_count(), kept + kept / 4);
  EXPECT_GT(statistics.evictions, 0u) << "more pages than frames";
}

TEST(LentPages, AreNotLentByAFullPool) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  const std::vector<PageHeader*> taken = test.take_all();
  for (uint32_t number = 1; number <= 30; ++number) ASSERT_TRUE(reads_page(reader, number));
  EXPECT_EQ(test.pool().lent_count(), 0u);
  EXPECT_EQ(test.statistics().frames, 8u);
  EXPECT_EQ(test.cache.cache.return_lent(1), 0u);
  test.give_back(taken);
}

TEST(LentPages, ReturnWithTheirNames) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  std::map<uint32_t, uint64_t> generations;  // by the index of the page
  std::vector<PageHeader*> taken = test.take_all();
  for (const PageHeader* page : taken) {
    generations[page->volatile_self().index()] = page->volatile_self().generation();
  }
  test.give_back(taken);
  for (uint32_t number = 1; number <= test.pages.count(); ++number) {
    ASSERT_TRUE(reads_page(reader, number));
  }
  ASSERT_GT(test.pool().lent_count(), SnapshotCache::kReturnAtOnce / 2);
  // Frames that were evicted, and hold no page, return as well.
  while (test.pool().lent_count() != 0) {
    ASSERT_NE(test.cache.cache.return_lent(test.pool().lent_count()), 0u);
  }
  EXPECT_EQ(test.statistics().frames, 8u);
  EXPECT_EQ(counts_by_storage_add_up(test.cache.cache), "");
  taken = test.take_all();
  ASSERT_EQ(taken.size(), generations.size());
  uint64_t lent = 0;
  for (const PageHeader* page : taken) {
    const VolatilePointer name = page->volatile_self();
    // A page gets a new name when it is lent, and one when it is taken (R86).
    const uint64_t uses = name.generation() - generations.at(name.index());
    EXPECT_TRUE(uses == 1 || uses == 2) << name.index();
    lent += uses == 2 ? 1 : 0;
  }
  EXPECT_GT(lent, SnapshotCache::kReturnAtOnce / 2);
  test.give_back(taken);
  EXPECT_TRUE(reads_page(reader, 1)) << "the cache works as before";
}

TEST(LentPages, ThoseInUseStayLongest) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  constexpr uint32_t kHot = 40;
  for (uint32_t number = 1; number <= 150; ++number) ASSERT_TRUE(reads_page(reader, number));
  for (int look = 0; look < 2; ++look) {
    for (uint32_t number = 100; number < 100 + kHot; ++number)
      ASSERT_TRUE(reads_page(reader, number));
  }
  ASSERT_GT(test.pool().lent_count(), 100u);
  const StorageCount lent_out = count_of(test.cache.cache, 1);
  EXPECT_EQ(test.cache.cache.return_lent(60), 60u);
  const StorageCount returned = count_of(test.cache.cache, 1);
  EXPECT_EQ(returned.pages_read, lent_out.pages_read);
  EXPECT_EQ(returned.evictions, lent_out.evictions + 60) << "each of them held a page";
  const uint64_t before = test.statistics().misses;
  for (uint32_t number = 100; number < 100 + kHot; ++number)
    ASSERT_TRUE(reads_page(reader, number));
  EXPECT_EQ(test.statistics().misses, before);
}

/// The list of evicted frames still has entries of frames that were taken, when all lent frames are
/// returned. Those entries must not come back.
TEST(LentPages, ComeAgainAfterAllWereReturned) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  for (int turn = 0; turn < 3; ++turn) {
    for (uint32_t number = 1; number <= test.pages.count(); ++number) {
      ASSERT_TRUE(reads_page(reader, number));
    }
    while (test.pool().lent_count() != 0) {
      ASSERT_NE(test.cache.cache.return_lent(test.pool().lent_count()), 0u);
    }
    ASSERT_EQ(test.pool().free_count(), test.pool().page_count());
  }
}

TEST(LentPages, AreWarmedUntilThePoolKeepsTheRest) {
  LendingPool test(1);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  uint64_t warmed = 0;
  uint32_t number = 1;
  while (const auto added = test.cache.cache.warm(NumberedPages::pointer(number), kPagesPerRead,
                                                  buffer.bytes().data())) {
    warmed += *added;
    number += kPagesPerRead;
    ASSERT_LE(number, test.pages.count());
  }
  EXPECT_EQ(warmed, test.statistics().frames_in_use);
  EXPECT_EQ(count_of(test.cache.cache, 1).pages_read, warmed);
  EXPECT_GT(test.pool().lent_count(), test.pool().page_count() / 2);
  EXPECT_FALSE(test.pool().can_lend());
  EXPECT_EQ(test.statistics().evictions, 0u);
}

/// R57: the pages are in the cache, so the call reads nothing. The reader must leave its round.
TEST(LentPages, AReaderOfCachedPagesTogetherHoldsNoneBack) {
  LendingPool test(1);
  SnapshotReader reader(test.cache.cache, 0);
  for (const uint32_t number : {1u, 60u}) ASSERT_TRUE(reads_page(reader, number));
  reader.read_together(
      std::vector<SnapshotPointer>{NumberedPages::pointer(1), NumberedPages::pointer(60)});
  const uint64_t lent = test.pool().lent_count();
  ASSERT_NE(lent, 0u);
  EXPECT_EQ(test.cache.cache.return_lent(lent), lent) << "waits for ever if the reader is there";
}

TEST(LentPages, ServeReadersWhileTheyComeAndGo) {
  const uint64_t start = seed();
  constexpr uint32_t kReaders = 3;
  LendingPool test(kReaders);
  std::optional<LentPagesReturner> returner(std::in_place, test.pool(), test.cache.cache);
  std::atomic<uint32_t> wrong{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (uint32_t ordinal = 0; ordinal < kReaders; ++ordinal) {
    threads.emplace_back([&, ordinal] {
      SnapshotReader reader(test.cache.cache, ordinal);
      std::mt19937_64 random(start + ordinal);
      while (!ends.load(std::memory_order_relaxed)) {
        const auto number = static_cast<uint32_t>(1 + random() % test.pages.count());
        const PageHeader* page = nullptr;
        const bool is_good = reader.get(NumberedPages::pointer(number), page) == Status::ok &&
                             NumberedPages::is_page(page, number) &&
                             NumberedPages::is_page(page, number);
        if (!is_good) wrong.fetch_add(1, std::memory_order_relaxed);
        if (random() % 4 == 0) reader.leave();
      }
      reader.leave();
    });
  }
  // This thread writes into pages as transactions do.
  std::mt19937_64 random(start);
  const uint64_t all = test.pool().page_count();
  uint64_t most_lent = 0;
  for (uint64_t turn = 0; turn < rounds(300, 20'000); ++turn) {
    std::vector<PageHeader*> taken;
    const uint64_t wanted = random() % all;
    for (uint64_t tries = 0; taken.size() < wanted && tries < 10'000; ++tries) {
      PageHeader* page = test.allocator().take();
      if (page == nullptr) {
        std::this_thread::yield();
        continue;
      }
      std::memset(reinterpret_cast<std::byte*>(page) + sizeof(PageHeader), 0x5a,
                  kPageBytes - sizeof(PageHeader));
      taken.push_back(page);
    }
    test.give_back(taken);
    for (int pause = 0; pause < 20; ++pause) std::this_thread::yield();
    most_lent = std::max(most_lent, test.pool().lent_count());
  }
  ends.store(true, std::memory_order_relaxed);
  for (std::thread& thread : threads) thread.join();
  returner.reset();
  EXPECT_EQ(wrong.load(std::memory_order_relaxed), 0u) << "seed " << start;
  EXPECT_GT(most_lent, all / 4);
  EXPECT_EQ(test.pool().free_count() + test.pool().lent_count(), all) << "a page is lost";
  EXPECT_EQ(counts_by_storage_add_up(test.cache.cache), "");
}

}  // namespace
}  // namespace atolldb::test
