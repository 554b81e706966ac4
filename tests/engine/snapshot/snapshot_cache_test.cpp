// The snapshot cache: hits, read-ahead, eviction, errors, concurrent readers, and counts by
// storage.
#include "engine/snapshot/snapshot_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <random>

#include "shared/config/config_keys.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/engine/snapshot/round_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

/// Reads the page. Returns true if its content is right.
bool reads(SnapshotReader& reader, uint32_t number) {
  const PageHeader* page = nullptr;
  return reader.get(NumberedPages::pointer(number), page) == Status::ok &&
         NumberedPages::is_page(page, number);
}

TEST(SnapshotCache, APageIsNotEvictedWhileItIsRead) {
  EXPECT_EQ(a_page_is_not_evicted_while_it_is_read(), "");
}

TEST(SnapshotCache, ReadsEachPageOnceWhileAllFit) {
  NumberedPages pages(20);
  TestCache test(pages.files(), 32, 1);
  SnapshotReader reader(test.cache, 0);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t number = 1; number <= pages.count(); ++number) {
      ASSERT_TRUE(reads(reader, number));
    }
  }
  EXPECT_EQ(test.cache.statistics().misses, 2u) << "16 pages, and the 4 after them";
  EXPECT_EQ(test.cache.statistics().evictions, 0u);
  EXPECT_EQ(test.cache.statistics().frames, 32u);
  EXPECT_EQ(test.cache.statistics().frames_in_use, pages.count());
}

TEST(SnapshotCache, KeepsWhatIsUsedAgain) {
  NumberedPages pages(200);
  TestCache test(pages.files(), 32, 1);
  SnapshotReader reader(test.cache, 0);
  for (uint32_t number = 2; number <= pages.count(); ++number) {
    ASSERT_TRUE(reads(reader, 1));
    ASSERT_TRUE(reads(reader, number));
  }
  // Two misses fill the cache, because they read ahead. Then each eviction frees a quarter of the
  // frames.
  EXPECT_EQ(test.cache.statistics().misses, 2 + (pages.count() - 32) / 8) << "page 1 was evicted";
  EXPECT_GT(test.cache.statistics().frames_in_use, 0u);
  EXPECT_LE(test.cache.statistics().frames_in_use, 32u);
}

TEST(SnapshotCache, ReadsAheadWhatIsNotThereYet) {
  NumberedPages pages(40);
  TestCache test(pages.files(), 40, 1);
  SnapshotReader reader(test.cache, 0);
  // Reads the last page alone. Each later read also reads ahead: up to the last page, up to a
  // cached page, and up to the limit of one read.
  for (const auto& [number, in_use] : {std::pair{40u, 1u}, {30u, 11u}, {20u, 21u}, {1u, 37u}}) {
    ASSERT_TRUE(reads(reader, number));
    EXPECT_EQ(test.cache.statistics().frames_in_use, in_use) << number;
  }
  // Only three frames are free, and no frame is evicted for pages read ahead.
  ASSERT_TRUE(reads(reader, 17));
  EXPECT_EQ(test.cache.statistics().frames_in_use, 40u);
  EXPECT_EQ(test.cache.statistics().misses, 5u);
  EXPECT_EQ(test.cache.statistics().evictions, 0u);
  for (uint32_t number = 1; number <= pages.count(); ++number) {
    ASSERT_TRUE(reads(reader, number));
  }
  EXPECT_EQ(test.cache.statistics().misses, 5u);
}

TEST(SnapshotCache, WhatIsReadAheadForOthersThanScansPushesNothingOut) {
  NumberedPages pages(400);
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  for (uint32_t number = 1; number <= 64; ++number) {
    ASSERT_TRUE(reads(reader, number));
  }
  const uint64_t filled = test.cache.statistics().misses;
  EXPECT_EQ(filled, 4u);
  // A reader that reads backwards, or far apart, reads each page alone.
  for (uint32_t number = 380; number > 100; number -= 20) {
    ASSERT_TRUE(reads(reader, number));
  }
  EXPECT_EQ(test.cache.statistics().misses, filled + 14);
  EXPECT_LE(test.cache.statistics().evictions, 16u);
  // The scan skips some pages, as a scan of leaf pages skips interior pages.
  const uint64_t before = test.cache.statistics().misses;
  for (uint32_t number = 101; number <= 260; number += number % 7 == 0 ? 2 : 1) {
    ASSERT_TRUE(reads(reader, number));
  }
  EXPECT_LE(test.cache.statistics().misses, before + 2 * 160 / 16);
}

TEST(SnapshotCache, PagesReadAheadAreKeptWhenTheyAreUsedAgain) {
  NumberedPages pages(400);
  TestCache test(pages.files(), 32, 1);
  SnapshotReader reader(test.cache, 0);
  ASSERT_TRUE(reads(reader, 1));
  // Page 2 was read ahead with page 1. It stays in the cache during a scan of all other pages.
  for (uint32_t number = 3; number <= pages.count(); ++number) {
    ASSERT_TRUE(reads(reader, 2));
    ASSERT_TRUE(reads(reader, number));
  }
  EXPECT_EQ(test.cache.statistics().misses, 2 + (pages.count() - 32) / 8) << "page 2 was evicted";
}

/// Half of the cache has pages that are in use. A scan of many times the cache's size evicts none
/// of them, because its pages are accessed once. Nor do pages stay that were accessed once before
/// it.
TEST(SnapshotCache, AScanEvictsNoPagesThatAreInUse) {
  constexpr uint32_t kFrames = 64;
  constexpr uint32_t kHot = kFrames / 2;
  NumberedPages pages(2'000);
  TestCache test(pages.files(), kFrames, 1);
  SnapshotReader reader(test.cache, 0);
  const auto misses = [&] { return test.cache.statistics().misses; };
  const auto read_hot = [&] {
    for (uint32_t number = 1; number <= kHot; ++number) ASSERT_TRUE(reads(reader, number));
  };
  read_hot();
  read_hot();
  for (uint32_t number = kHot + 1; number <= kFrames; ++number) ASSERT_TRUE(reads(reader, number));
  uint64_t of_hot = 0;
  for (uint32_t number = 100; number <= pages.count(); ++number) {
    ASSERT_TRUE(reads(reader, number));
    if (number % 8 != 0) continue;
    const uint64_t before = misses();
    read_hot();
    of_hot += misses() - before;
  }
  EXPECT_EQ(of_hot, 0u);
  EXPECT_GT(test.cache.statistics().evictions, 20 * kFrames);
  for (uint32_t number = kHot + 1; number <= kFrames; ++number) {
    const std::vector<uint64_t> cached = test.cache.cached_pages(kFrames);
    const uint64_t name = NumberedPages::pointer(number).word();
    EXPECT_EQ(std::ranges::count(cached, name), 0) << number;
  }
}

TEST(SnapshotCache, ADamagedPageIsItsReadersAlone) {
  NumberedPages pages(12);
  constexpr uint32_t kDamaged = 5;
  ASSERT_TRUE(pages.file_system().corrupt(snapshot_file_path("/data", 0, 1),
                                          kDamaged * kPageBytes + kPageBytes / 2, 1));
  TestCache test(pages.files(), 16, 1);
  SnapshotReader reader(test.cache, 0);
  for (int round = 0; round < 3; ++round) {
    for (uint32_t number = 1; number <= pages.count(); ++number) {
      const PageHeader* page = nullptr;
      const Status wanted = number == kDamaged ? Status::snapshot_unreadable : Status::ok;
      ASSERT_EQ(reader.get(NumberedPages::pointer(number), page), wanted) << number;
      ASSERT_TRUE(wanted != Status::ok || NumberedPages::is_page(page, number));
    }
  }
  EXPECT_NE(test.last_error.find("page 5"), std::string::npos) << test.last_error;
  EXPECT_EQ(test.cache.statistics().frames_in_use, pages.count() - 1)
      << "frames of pages that were not read are free";
}

void read_together(SnapshotReader& reader, const std::vector<uint32_t>& numbers) {
  std::vector<SnapshotPointer> names;
  for (const uint32_t number : numbers) names.push_back(NumberedPages::pointer(number));
  reader.read_together(names);
}

TEST(SnapshotCache, ReadsMissingPagesTogether) {
  NumberedPages pages(400);
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  read_together(reader, {10, 390, 50, 90, 50});
  EXPECT_EQ(test.cache.statistics().misses, 4u);
  EXPECT_EQ(test.cache.statistics().frames_in_use, 4u);
  for (const uint32_t number : {10u, 390u, 50u, 90u}) EXPECT_TRUE(reads(reader, number));
  EXPECT_EQ(test.cache.statistics().misses, 4u) << "all were in the cache";
  read_together(reader, {10, 50, 90, 100});
  EXPECT_EQ(test.cache.statistics().misses, 4u) << "a single page is read when it is needed";
  std::vector<uint32_t> many;
  for (uint32_t number = 100; number < 150; ++number) many.push_back(number);
  read_together(reader, many);
  EXPECT_EQ(test.cache.statistics().frames_in_use, 4u + kPagesPerRead) << "the limit of one call";
}

TEST(SnapshotCache, ReadsAdjacentPagesTogetherByOneRead) {
  NumberedPages pages(60);
  constexpr uint32_t kDamaged = 12;
  ASSERT_TRUE(pages.file_system().corrupt(snapshot_file_path("/data", 0, 1),
                                          kDamaged * kPageBytes + kPageBytes / 2, 1));
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  read_together(reader, {10, 11, kDamaged, 13, 40, 20, 21});
  EXPECT_EQ(test.cache.statistics().misses, 3u) << "10 to 13, 40, 20 to 21";
  EXPECT_EQ(test.cache.statistics().frames_in_use, 6u);
  for (const uint32_t number : {10u, 11u, 13u, 40u, 20u, 21u}) EXPECT_TRUE(reads(reader, number));
  EXPECT_EQ(test.cache.statistics().misses, 3u);
  const PageHeader* page = nullptr;
  EXPECT_EQ(reader.get(NumberedPages::pointer(kDamaged), page), Status::snapshot_unreadable);
}

/// A cache of 512 frames counts a miss of a page that was among the last 64 evictions.
TEST(SnapshotCache, CountsMissesThatALargerCacheWouldSave) {
  constexpr uint32_t kPageCount = 2'000;
  NumberedPages pages(kPageCount + 1);
  TestCache test(pages.files(), 512, 1);
  SnapshotReader reader(test.cache, 0);
  // Reads `count` pages in an order in which no read gets the next ones.
  const auto read_round = [&](uint32_t count) {
    const uint64_t before = test.cache.statistics().ghost_hits;
    for (uint32_t i = 0; i < count; ++i) EXPECT_TRUE(reads(reader, 1 + i * 37 % kPageCount));
    return test.cache.statistics().ghost_hits - before;
  };
  for (int round = 0; round < 2; ++round) read_round(kPageCount);
  EXPECT_EQ(read_round(kPageCount), 0u) << "each page was evicted 1,488 reads ago";
  for (int round = 0; round < 2; ++round) read_round(530);
  const uint64_t hits = read_round(530);
  EXPECT_GT(hits, 0u) << "each page was evicted 18 reads ago";
  EXPECT_LE(hits, 530u);
}

/// A wait for n pages counts for each of them as 1/n, because the device reads them at the same
/// time.
TEST(SnapshotCache, CountsAWaitForSeveralPagesOnce) {
  constexpr uint32_t kPageCount = 2'000;
  constexpr uint32_t kTogether = 8;  // a part of the frames that one eviction frees
  constexpr uint32_t kWaits = 66;    // their pages are 16 more than there are frames
  NumberedPages pages(kPageCount + 1);
  TestCache test(pages.files(), 512, 1);
  SnapshotReader reader(test.cache, 0);
  const auto read_round = [&] {
    const uint64_t before = test.cache.statistics().ghost_hits;
    for (uint32_t wait = 0; wait < kWaits; ++wait) {
      std::vector<uint32_t> numbers;
      for (uint32_t i = wait * kTogether; i < (wait + 1) * kTogether; ++i) {
        numbers.push_back(1 + i * 37 % kPageCount);
      }
      read_together(reader, numbers);
    }
    return test.cache.statistics().ghost_hits - before;
  };
  EXPECT_EQ(read_round(), 0u) << "no page was evicted before";
  read_round();
  const uint64_t hits = read_round();
  EXPECT_GT(hits, kWaits / 2) << "each page was evicted about 16 reads ago";
  EXPECT_LE(hits, kWaits);
}

/// A reader searches for missing pages only for some time after a miss, because a search of cached
/// pages costs time.
TEST(SnapshotCache, AReaderExpectsMissesForSomeTimeAfterEachMiss) {
  NumberedPages pages(60);
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  const auto expected = [&] {
    uint32_t count = 0;
    while (count <= SnapshotReader::kSearchesPerMiss && reader.expects_misses()) ++count;
    return count;
  };
  EXPECT_EQ(expected(), SnapshotReader::kSearchesPerMiss) << "a new reader knows nothing";
  EXPECT_EQ(expected(), 0u);
  EXPECT_TRUE(reads(reader, 10));
  EXPECT_EQ(expected(), SnapshotReader::kSearchesPerMiss);
  EXPECT_TRUE(reads(reader, 10));
  EXPECT_EQ(expected(), 0u) << "the page was cached";
  read_together(reader, {40, 50});
  EXPECT_EQ(expected(), SnapshotReader::kSearchesPerMiss);
  read_together(reader, {40, 50});
  EXPECT_EQ(expected(), 0u);
}

TEST(SnapshotCache, ReadsNothingTogetherInFewFrames) {
  NumberedPages pages(40);
  TestCache test(pages.files(), 7, 1);
  SnapshotReader reader(test.cache, 0);
  read_together(reader, {1, 10, 20});
  EXPECT_EQ(test.cache.statistics().misses, 0u);
  TestCache larger(pages.files(), 8, 1);
  SnapshotReader other(larger.cache, 0);
  read_together(other, {1, 10, 20});
  EXPECT_EQ(larger.cache.statistics().misses, 2u);
}

TEST(SnapshotCache, ADamagedPageAmongOthersIsReportedWhenItIsNeeded) {
  NumberedPages pages(12);
  constexpr uint32_t kDamaged = 5;
  ASSERT_TRUE(pages.file_system().corrupt(snapshot_file_path("/data", 0, 1),
                                          kDamaged * kPageBytes + kPageBytes / 2, 1));
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  read_together(reader, {2, kDamaged, 9, 3'000});
  EXPECT_EQ(test.last_error, "");
  EXPECT_EQ(test.cache.statistics().frames_in_use, 2u) << "the others give their frames back";
  EXPECT_TRUE(reads(reader, 2));
  EXPECT_TRUE(reads(reader, 9));
  const PageHeader* page = nullptr;
  EXPECT_EQ(reader.get(NumberedPages::pointer(kDamaged), page), Status::snapshot_unreadable);
  EXPECT_NE(test.last_error.find("page 5"), std::string::npos) << test.last_error;
}

TEST(SnapshotCache, ServesManyThreadsThroughFewFrames) {
  const uint64_t start = seed();
  NumberedPages pages(300, [](uint32_t number) { return 1 + number % 5; });
  constexpr uint32_t kReaders = 4;
  TestCache test(pages.files(), 48, kReaders);
  std::atomic<uint32_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint32_t ordinal = 0; ordinal < kReaders; ++ordinal) {
    threads.emplace_back([&, ordinal] {
      SnapshotReader reader(test.cache, ordinal);
      std::mt19937_64 random(start + ordinal);
      for (uint64_t i = 0; i < rounds(20'000, 1'000'000); ++i) {
        // Three of four reads are of one sixteenth of the pages.
        const uint64_t hot = random() % 4;
        const auto number =
            static_cast<uint32_t>(1 + random() % (hot == 0 ? pages.count() : pages.count() / 16));
        const PageHeader* page = nullptr;
        const bool good = reader.get(NumberedPages::pointer(number), page) == Status::ok &&
                          NumberedPages::is_page(page, number) &&
                          NumberedPages::is_page(page, number);
        if (!good) wrong.fetch_add(1, std::memory_order_relaxed);
        if (random() % 64 == 0) reader.leave();
        if (random() % 32 == 0) {
          const auto some = [&] { return static_cast<uint32_t>(1 + random() % pages.count()); };
          read_together(reader, {some(), some(), some()});
        }
      }
      reader.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(std::memory_order_relaxed), 0u);
  EXPECT_GT(test.cache.statistics().evictions, 1'000u);
  EXPECT_EQ(counts_by_storage_add_up(test.cache), "");
}

TEST(SnapshotCache, APageThatCannotBeReadIsAnAnswerAndTakesNoFrame) {
  NumberedPages pages(10);
  TestCache test(pages.files(), 4, 1);
  SnapshotReader reader(test.cache, 0);
  const PageHeader* page = nullptr;
  for (uint32_t behind = 1; behind <= 20; ++behind) {
    ASSERT_EQ(reader.get(NumberedPages::pointer(10 + behind), page), Status::snapshot_unreadable);
    EXPECT_NE(test.last_error.find("snapshot_1"), std::string::npos) << test.last_error;
  }
  for (uint32_t number = 1; number <= 10; ++number) {
    ASSERT_TRUE(reads(reader, number));
  }
}

TEST(SnapshotCache, AWaitForAFrameEndsWithItsPatience) {
  EXPECT_EQ(a_wait_for_a_frame_ends(FrameWaitEnd::patience), "");
}

TEST(SnapshotCache, AReaderAnnouncesItsWaitsForTheDevice) {
  EXPECT_EQ(a_reader_announces_its_waits(), "");
}

TEST(SnapshotCache, ATransactionThatFindsNoFrameIsRepeated) {
  EXPECT_EQ(a_transaction_without_frames_is_repeated(), "");
}

TEST(SnapshotCache, ASweepIsBoundedHoweverManyFramesWereUsed) {
  constexpr uint32_t kFrames = 8 * SnapshotCache::kMostSwept;
  NumberedPages pages(kFrames + 100);
  TestCache test(pages.files(), kFrames, 1);
  SnapshotReader reader(test.cache, 0);
  // Nearly every frame was used recently. A page that was read ahead counts as used from its second
  // read on.
  for (uint32_t number = 1; test.cache.statistics().frames_in_use < kFrames; ++number) {
    for (int look = 0; look < 3; ++look) ASSERT_TRUE(reads(reader, number));
  }
  ASSERT_EQ(test.cache.statistics().evictions, 0u);
  ASSERT_TRUE(reads(reader, kFrames + 50));
  EXPECT_EQ(test.cache.statistics().evictions, 16u);
  EXPECT_GE(test.cache.statistics().longest_sweep, SnapshotCache::kMostSwept);
  EXPECT_LE(test.cache.statistics().longest_sweep, SnapshotCache::kMostSwept + 16);
}

void expect_count(const SnapshotCache& cache, uint32_t storage_id, uint64_t pages_read,
                  uint64_t evictions) {
  EXPECT_EQ(count_of(cache, storage_id).pages_read, pages_read) << "storage " << storage_id;
  EXPECT_EQ(count_of(cache, storage_id).evictions, evictions) << "storage " << storage_id;
}

TEST(CountsByStorage, IncludePagesReadAheadReadTogetherAndWarmed) {
  NumberedPages pages(60, [](uint32_t number) { return number <= 20 ? 3u : 7u; });
  TestCache test(pages.files(), 64, 1);
  SnapshotReader reader(test.cache, 0);
  ASSERT_TRUE(reads(reader, 1));
  expect_count(test.cache, 3, 16, 0);
  expect_count(test.cache, 7, 0, 0);
  ASSERT_TRUE(reads(reader, 17));
  expect_count(test.cache, 3, 20, 0);
  expect_count(test.cache, 7, 12, 0);
  read_together(reader, {40, 50});
  expect_count(test.cache, 7, 14, 0);
  IoBuffer buffer(kPagesPerRead * kPageBytes);
  EXPECT_EQ(test.cache.warm(NumberedPages::pointer(57), kPagesPerRead, buffer.bytes().data()), 4u);
  expect_count(test.cache, 7, 18, 0);
  for (int look = 0; look < 3; ++look) ASSERT_TRUE(reads(reader, 40));
  expect_count(test.cache, 7, 18, 0);
  EXPECT_EQ(count_of(test.cache, 7).cached(), 18u);
  EXPECT_EQ(counts_by_storage_add_up(test.cache), "");
}

TEST(CountsByStorage, FollowEvictions) {
  NumberedPages pages(200, [](uint32_t number) { return number <= 100 ? 3u : 7u; });
  TestCache test(pages.files(), 32, 1);
  SnapshotReader reader(test.cache, 0);
  for (uint32_t number = 1; number <= pages.count(); ++number) {
    ASSERT_TRUE(reads(reader, number));
    ASSERT_EQ(counts_by_storage_add_up(test.cache), "") << number;
  }
  expect_count(test.cache, 3, 100, 100);
  EXPECT_EQ(count_of(test.cache, 7).pages_read, 100u);
  EXPECT_EQ(count_of(test.cache, 7).cached(), test.cache.statistics().frames_in_use);
  ASSERT_TRUE(reads(reader, 1));
  EXPECT_EQ(count_of(test.cache, 3).pages_read, 101u) << "the page was read again";
}

TEST(CountsByStorage, HaveNoPageThatWasNotRead) {
  NumberedPages pages(12, [](uint32_t number) { return number == 5 ? 9u : 3u; });
  // Damage to the storage id in a page's header.
  ASSERT_TRUE(pages.file_system().corrupt(
      snapshot_file_path("/data", 0, 1), 5 * kPageBytes + offsetof(PageHeader, storage_id) + 3, 1));
  TestCache test(pages.files(), 16, 1);
  SnapshotReader reader(test.cache, 0);
  read_together(reader, {4, 5});
  const PageHeader* page = nullptr;
  EXPECT_EQ(reader.get(NumberedPages::pointer(5), page), Status::snapshot_unreadable);
  expect_count(test.cache, 3, 1, 0);
  EXPECT_EQ(sum_of_counts(test.cache.storage_counts()).pages_read, 1u);
  EXPECT_EQ(counts_by_storage_add_up(test.cache), "");
}

/// Ids that no storage has, in pages whose checksum is right.
TEST(CountsByStorage, AcceptEveryId) {
  const std::vector<uint32_t> ids = {0, 1, kMaxStorages, kMaxStorages + 1, ~uint32_t{0}};
  NumberedPages pages(100, [&](uint32_t number) { return ids[number % ids.size()]; });
  TestCache test(pages.files(), 16, 1);
  SnapshotReader reader(test.cache, 0);
  for (int round = 0; round < 2; ++round) {
    for (uint32_t number = 1; number <= pages.count(); ++number) {
      ASSERT_TRUE(reads(reader, number));
      ASSERT_EQ(counts_by_storage_add_up(test.cache), "") << number;
    }
  }
  for (const uint32_t id : {kMaxStorages, kMaxStorages + 1, ~uint32_t{0}}) {
    EXPECT_EQ(count_of(test.cache, id).pages_read, 40u) << id;
    EXPECT_GT(count_of(test.cache, id).evictions, 30u) << id;
  }
}

TEST(CountsByStorage, OfADroppedStorageMoveToTheOthersWhenItsSlotIsTaken) {
  constexpr uint32_t kOld = 5;
  constexpr uint32_t kNew = kOld + kMaxStorages;
  StorageCounts counts;
  for (int page = 0; page < 3; ++page) counts.add_read(kOld);
  counts.add_eviction(kOld);
  EXPECT_EQ(counts.slots()[kOld].storage_id, kOld);
  EXPECT_EQ(counts.slots()[kOld].cached(), 2u);
  EXPECT_EQ(counts.others().pages_read, 0u);
  counts.add_read(kNew);
  EXPECT_EQ(counts.slots()[kOld].storage_id, kNew);
  EXPECT_EQ(counts.slots()[kOld].pages_read, 1u);
  EXPECT_EQ(counts.others().cached(), 2u);
  counts.add_eviction(kOld);
  counts.add_read(kOld);  // a pinned snapshot still has the dropped storage
  EXPECT_EQ(counts.slots()[kOld].pages_read, 1u);
  EXPECT_EQ(counts.slots()[kOld].evictions, 0u);
  EXPECT_EQ(counts.others().pages_read, 4u);
  EXPECT_EQ(counts.others().cached(), 2u);
}

/// Compares with a model without slots. Larger ids come later. A slot has the counts of the largest
/// id that was read.
TEST(CountsByStorage, AgreeWithAModel) {
  const uint64_t start = seed();
  std::mt19937_64 random(start);
  std::vector<uint32_t> ids;
  for (uint32_t turn = 0; turn < 3; ++turn) {
    for (const uint32_t slot : {0u, 1u, 7u, kMaxStorages - 1}) {
      ids.push_back(slot + turn * kMaxStorages);
    }
  }
  ids.push_back(~uint32_t{0});
  std::map<uint32_t, StorageCount> model;
  StorageCounts counts;
  const uint64_t steps = rounds(20'000, 1'000'000);
  for (uint64_t step = 0; step < steps; ++step) {
    const uint32_t id = ids[random() % (1 + step * ids.size() / steps)];
    StorageCount& expected = model[id];
    if (random() % 2 == 0 && expected.cached() != 0) {
      counts.add_eviction(id);
      ++expected.evictions;
    } else {
      counts.add_read(id);
      ++expected.pages_read;
    }
  }
  StorageCount whole;
  std::map<uint32_t, StorageCount> of_slots;  // of the largest id of each slot
  for (const auto& [id, count] : model) {     // ids ascend
    whole.pages_read += count.pages_read;
    whole.evictions += count.evictions;
    if (id != 0 && count.pages_read != 0) {
      of_slots[id % kMaxStorages] = {id, count.pages_read, count.evictions};
    }
  }
  EXPECT_EQ(of_slots.size(), 4u);
  for (const auto& [slot, count] : of_slots) {
    const StorageCount& found = counts.slots()[slot];
    EXPECT_EQ(found.storage_id, count.storage_id) << "seed " << start;
    EXPECT_EQ(found.pages_read, count.pages_read) << "seed " << start;
    EXPECT_EQ(found.evictions, count.evictions) << "seed " << start;
  }
  const StorageCount sum = sum_of_counts(counts);
  EXPECT_EQ(sum.pages_read, whole.pages_read) << "seed " << start;
  EXPECT_EQ(sum.evictions, whole.evictions) << "seed " << start;
}

/// The check of the config counts the tables of the caches (snapshot_table_bytes).
TEST(SnapshotCache, TheConfigKnowsTheSizeOfTheTables) {
  std::mt19937_64 random(seed());
  for (int round = 0; round < 1'000; ++round) {
    const uint64_t own = 1 + random() % (uint64_t{1} << (random() % 30));
    const uint64_t lent = random() % (uint64_t{1} << (random() % 30));
    Config::Memory memory;
    memory.snapshot_cache = own * kPageBytes;
    memory.volatile_pool = lent * kPageBytes;
    for (const bool lends : {false, true}) {
      memory.lend_pool = lends;
      EXPECT_EQ(snapshot_table_bytes(memory), SnapshotCache::table_bytes(own, lends ? lent : 0));
    }
  }
}

/// A heartbeat copies the counts of storages that have changed, and no others.
TEST(CountsByStorage, OnlyChangedSlotsAreTaken) {
  StorageCounts counts;
  EXPECT_TRUE(counts.take_changed().empty());
  counts.add_read(3);
  counts.add_read(kMaxStorages + 5);
  counts.add_read(0);  // a damaged page: counts among the others
  std::vector<StorageCount> taken = counts.take_changed();
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].storage_id, 3u);
  EXPECT_EQ(taken[1].storage_id, kMaxStorages + 5);
  EXPECT_TRUE(counts.take_changed().empty());
  counts.add_eviction(3);
  taken = counts.take_changed();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].pages_read, 1u);
  EXPECT_EQ(taken[0].evictions, 1u);
  counts.add_read(kMaxStorages + 3);  // takes the slot over
  taken = counts.take_changed();
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(taken[0].storage_id, kMaxStorages + 3);
}

}  // namespace
}  // namespace atolldb::test
