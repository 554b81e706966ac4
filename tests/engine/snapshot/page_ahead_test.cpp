// Pages of snapshots that are read before they are needed.
#include "engine/snapshot/page_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/engine/snapshot/cache_rules.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

constexpr uint32_t kPages = 300;

class PageAheadTest : public testing::TestWithParam<BatchReader::Method> {
 protected:
  bool takes(PageAhead& ahead, uint32_t number) {
    const bool is_taken = ahead.take(NumberedPages::pointer(number), page());
    EXPECT_TRUE(!is_taken || NumberedPages::is_page(page(), number)) << number;
    return is_taken;
  }
  PageHeader* page() { return reinterpret_cast<PageHeader*>(buffer_.bytes().data()); }

  NumberedPages pages_{kPages};
  IoBuffer buffer_{kPageBytes};
};

TEST_P(PageAheadTest, RequestedPagesAreTakenInAnyOrderAndOthersAreNot) {
  std::mt19937_64 random(seed());
  PageAhead ahead(pages_.files(), GetParam());
  for (int round = 0; round < 100; ++round) {
    std::vector<uint32_t> numbers;
    while (numbers.size() < PageAhead::kMaxPages && random() % 40 != 0) {
      // Requests runs of adjacent pages, which may overlap.
      const auto first = static_cast<uint32_t>(1 + random() % kPages);
      for (uint32_t i = first; i <= kPages && i < first + random() % 20; ++i) numbers.push_back(i);
    }
    for (const uint32_t number : numbers) {
      if (!ahead.request(NumberedPages::pointer(number))) break;
    }
    if (random() % 2 == 0) ahead.start();
    std::ranges::shuffle(numbers, random);
    for (const uint32_t number : numbers) static_cast<void>(takes(ahead, number));
    ahead.clear();
    for (const uint32_t number : numbers) EXPECT_FALSE(takes(ahead, number)) << "it was forgotten";
  }
}

TEST_P(PageAheadTest, AllRequestedPagesAreThereUntilThereIsNoRoom) {
  PageAhead ahead(pages_.files(), GetParam());
  for (const uint32_t distance : {1u, 5u, 15u, 16u, 40u}) {
    std::vector<uint32_t> numbers;
    for (uint32_t number = 1; number <= kPages; number += distance) {
      if (!ahead.request(NumberedPages::pointer(number))) break;
      EXPECT_TRUE(ahead.request(NumberedPages::pointer(number))) << "it is requested already";
      numbers.push_back(number);
    }
    const size_t all = (kPages + distance - 1) / distance;
    const size_t least = PageAhead::kMaxPages / (PageAhead::kMaxGap + 1);
    EXPECT_GE(numbers.size(), std::min(all, least)) << distance;
    EXPECT_LE(numbers.size(), PageAhead::kMaxPages);
    EXPECT_TRUE(distance != 1 || numbers.size() == PageAhead::kMaxPages);
    for (const uint32_t number : numbers) EXPECT_TRUE(takes(ahead, number));
    EXPECT_FALSE(takes(ahead, numbers.back() + distance));
    ahead.clear();
  }
}

TEST_P(PageAheadTest, PagesThatCannotBeReadAreLeftToTheCaller) {
  PageAhead ahead(pages_.files(), GetParam());
  // Page kPages + 1 is past the end of the file. So the run of both pages cannot be read.
  ASSERT_TRUE(ahead.request(NumberedPages::pointer(kPages)));
  ASSERT_TRUE(ahead.request(NumberedPages::pointer(kPages + 1)));
  ASSERT_TRUE(ahead.request(SnapshotPointer::make(77, 0, 1)));
  ASSERT_TRUE(ahead.request(NumberedPages::pointer(5)));
  EXPECT_FALSE(takes(ahead, kPages + 1));
  EXPECT_FALSE(ahead.take(SnapshotPointer::make(77, 0, 1), page()));
  EXPECT_TRUE(takes(ahead, 5));
}

TEST_P(PageAheadTest, PagesThatWereNotTakenAreForgotten) {
  PageAhead ahead(pages_.files(), GetParam());
  for (uint32_t round = 0; round < 10; ++round) {
    for (uint32_t i = 1; i <= 64; ++i) {
      ASSERT_TRUE(ahead.request(NumberedPages::pointer(i)));
    }
    ahead.clear();
    EXPECT_FALSE(takes(ahead, 1));
  }
}

TEST_P(PageAheadTest, PagesOfTheWindowBeforeStay) {
  PageAhead ahead(pages_.files(), GetParam());
  for (uint32_t round = 0; round < 10; ++round) {
    ahead.begin_window();
    for (uint32_t i = 1; i <= 64; ++i) {
      ASSERT_TRUE(ahead.request(NumberedPages::pointer(i)));
    }
    ahead.begin_window();
    for (uint32_t i = 101; i <= 164; ++i) {
      ASSERT_TRUE(ahead.request(NumberedPages::pointer(i)));
    }
    for (uint32_t i = 1; i <= 63; ++i) EXPECT_TRUE(takes(ahead, i));
    for (uint32_t i = 101; i <= 163; ++i) EXPECT_TRUE(takes(ahead, i));
    ahead.begin_window();
    EXPECT_FALSE(takes(ahead, 64)) << "its window is over";
    EXPECT_TRUE(takes(ahead, 164));
  }
}

/// A cache with some pages, which are damaged on the device since.
class PagesInCache {
 public:
  PagesInCache(NumberedPages& pages, const std::vector<uint32_t>& numbers)
      : cache_(pages.files(), 64, 1) {
    std::vector<SnapshotPointer> names;
    for (const uint32_t number : numbers) names.push_back(NumberedPages::pointer(number));
    SnapshotReader reader(cache_.cache, 0);
    EXPECT_EQ(reader.read_together(names), numbers.size());
    for (const uint32_t number : numbers) {
      EXPECT_TRUE(
          pages.file_system()
              .corrupt(snapshot_file_path("/data", 0, 1), number * kPageBytes + kPageBytes / 2, 1)
              .has_value());
    }
  }
  const SnapshotCache* cache() const { return &cache_.cache; }

 private:
  TestCache cache_;
};

TEST_P(PageAheadTest, PagesOfTheCacheAreNotRead) {
  const PagesInCache some(pages_, {50, 100, 150, 211});
  PageAhead ahead(pages_.files(), GetParam(), some.cache());
  for (const uint32_t number : {50u, 100u, 200u, 150u, 203u, 100u, 210u, 211u}) {
    ASSERT_TRUE(ahead.request(NumberedPages::pointer(number))) << number;
  }
  for (const uint32_t number : {200u, 203u, 50u, 150u, 100u, 210u}) {
    EXPECT_TRUE(takes(ahead, number)) << number;
  }
  EXPECT_FALSE(takes(ahead, 211)) << "it joined the read of its neighbour";
  EXPECT_EQ(ahead.cached_count(), 3u) << "each was taken";
  ahead.clear();
  EXPECT_FALSE(takes(ahead, 50)) << "it was forgotten";
  ASSERT_TRUE(ahead.request(NumberedPages::pointer(50)));
  EXPECT_EQ(ahead.cached_count(), 3u) << "it was not taken again";
}

TEST_P(PageAheadTest, PagesOfTheCacheAndOthersShareTheRoomOfAWindow) {
  std::vector<uint32_t> cached;
  for (uint32_t number = 7; number <= kPages && cached.size() < kPagesPerRead; number += 18) {
    cached.push_back(number);
  }
  const PagesInCache some(pages_, cached);
  PageAhead ahead(pages_.files(), GetParam(), some.cache());
  for (uint32_t round = 0; round < 4; ++round) {
    ahead.clear();
    if (round % 2 != 0) ahead.begin_window();
    std::vector<uint32_t> requested;
    // Pages of the cache, and pages that no read gets together with these.
    for (uint32_t number = 7; number <= kPages; number += 9) {
      ASSERT_TRUE(ahead.request(NumberedPages::pointer(number))) << number;
      requested.push_back(number);
    }
    // Then adjacent pages until there is no room.
    uint32_t last = 8;
    while (last <= kPages && ahead.request(NumberedPages::pointer(last))) {
      last += last % 18 == 6 ? 2 : 1;
    }
    EXPECT_LT(last, kPages) << "all pages found room";
    for (const uint32_t number : requested) EXPECT_TRUE(takes(ahead, number)) << number;
    EXPECT_EQ(ahead.cached_count(), (round + 1) * cached.size());
  }
}

TEST(PageAhead, OneReadGetsPagesThatAreClose) {
  const auto page = NumberedPages::pointer;
  EXPECT_TRUE(PageAhead::joins(page(1), page(1), page(2)));
  EXPECT_TRUE(PageAhead::joins(page(1), page(1), page(2 + PageAhead::kMaxGap)));
  EXPECT_FALSE(PageAhead::joins(page(1), page(1), page(3 + PageAhead::kMaxGap)));
  EXPECT_FALSE(PageAhead::joins(page(5), page(5), page(4)));
  EXPECT_TRUE(PageAhead::joins(page(1), page(kPagesPerRead - 1), page(kPagesPerRead)));
  EXPECT_FALSE(PageAhead::joins(page(1), page(kPagesPerRead), page(kPagesPerRead + 1)));
}

INSTANTIATE_TEST_SUITE_P(Methods, PageAheadTest,
                         testing::Values(BatchReader::Method::automatic,
                                         BatchReader::Method::threads));

}  // namespace
}  // namespace atolldb::test
