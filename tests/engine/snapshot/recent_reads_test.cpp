// Counts of the pages that the snapshot cache has read, for the assignment of partitions.
#include "engine/snapshot/recent_reads.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace atolldb::test {
namespace {

/// A page of a snapshot whose range begins with the slice `low`.
struct ReadableTreePage {
  alignas(64) std::array<std::byte, kPageBytes> bytes{};

  ReadableTreePage(PageType type, uint8_t layer, uint32_t storage_id, uint64_t low) {
    header().type = type;
    header().layer = layer;
    header().is_snapshot = 1;
    header().storage_id = storage_id;
    if (type != PageType::array_leaf) reinterpret_cast<TreePage&>(header()).low = low;
  }
  PageHeader& header() { return *reinterpret_cast<PageHeader*>(bytes.data()); }
};

TEST(RecentReads, CountsPagesOfTheFirstLayerOfATreeOnly) {
  RecentReads reads;
  reads.add(ReadableTreePage(PageType::mastertree_border, 0, 4, 77).header());
  reads.add(ReadableTreePage(PageType::mastertree_interior, 0, 5, 78).header());
  reads.add(ReadableTreePage(PageType::mastertree_border, 1, 4, 79).header());
  reads.add(ReadableTreePage(PageType::array_leaf, 0, 6, 0).header());
  const ReadPages taken = reads.take();
  EXPECT_EQ(taken.count, 2u);
  EXPECT_EQ(taken.pages, (std::vector<ReadPage>{{4, 77}, {5, 78}}));
  EXPECT_EQ(reads.take().count, 0u) << "they were taken";
  EXPECT_TRUE(reads.take().pages.empty());
}

TEST(RecentReads, KeepsTheLastReadsOfMoreThanItHasRoomFor) {
  RecentReads reads;
  for (uint64_t low = 0; low <= RecentReads::kSample; ++low) {
    reads.add(ReadableTreePage(PageType::mastertree_border, 0, 4, low).header());
    if (low + 1 == RecentReads::kSample) {
      const RecentReads full = reads;
      EXPECT_EQ(RecentReads(full).take().pages.size(), RecentReads::kSample);
    }
  }
  const ReadPages taken = reads.take();
  EXPECT_EQ(taken.count, RecentReads::kSample + 1);
  EXPECT_EQ(taken.pages.size(), RecentReads::kSample);
  EXPECT_EQ(std::ranges::count(taken.pages, ReadPage{4, 0}), 0) << "the first one was replaced";
  EXPECT_EQ(std::ranges::count(taken.pages, ReadPage{4, RecentReads::kSample}), 1);
}

}  // namespace
}  // namespace atolldb::test
