// The counters: homes of lines, distinct lines of a transaction, contended lines.
#include "bench/line_counts/line_counter.h"

#include <gtest/gtest.h>

#include <memory>

namespace atolldb::bench {
namespace {

constexpr uint64_t kPage = 4096;

/// Two nodes with two workers each. Each node has one page, and the cluster has one.
class LineCounts : public testing::Test {
 protected:
  LineCounts() { counter_.start_counting(); }

  const std::byte* page(uint32_t index) const { return &pages_[index].bytes[0]; }
  const HomeCounts& counts(uint32_t worker, Home home) const {
    return counter_.counts_of(worker)[static_cast<uint32_t>(home)];
  }

  struct alignas(kPage) Page {
    std::byte bytes[kPage];
  };
  std::unique_ptr<Page[]> pages_ = std::make_unique<Page[]>(4);  // the last one is not counted
  LineCounter counter_{
      2, 2, {{page(0), kPage, LineCounter::kNoNode}, {page(2), kPage, 1}, {page(1), kPage, 0}}};
};

TEST_F(LineCounts, KnowTheHomeOfALine) {
  counter_.access(0, page(0), 8, false);
  counter_.access(0, page(1) + 64, 8, true);
  counter_.access(0, page(2) + 128, 8, false);
  counter_.access(3, page(2) + 128, 8, true);
  counter_.access(3, page(3), 8, true);
  counter_.access(3, this, 8, true);
  EXPECT_EQ(counts(0, Home::cluster).accesses, 1u);
  EXPECT_EQ(counts(0, Home::own_node).accesses, 1u);
  EXPECT_EQ(counts(0, Home::own_node).writes, 1u);
  EXPECT_EQ(counts(0, Home::other_node).accesses, 1u);
  EXPECT_EQ(counts(0, Home::other_node).firsts, 1u);
  EXPECT_EQ(counts(3, Home::own_node).accesses, 1u);
  EXPECT_EQ(counts(3, Home::other_node).accesses, 0u);
}

TEST_F(LineCounts, CountEachLineOfAnAccess) {
  counter_.access(0, page(1) + 60, 8, false);
  counter_.access(0, page(1), 0, false);
  counter_.access(0, page(1), 256, false);
  EXPECT_EQ(counts(0, Home::own_node).accesses, 2u + 4u);
  EXPECT_EQ(counts(0, Home::own_node).lines, 4u);
}

TEST_F(LineCounts, CountALineOnceInATransaction) {
  for (int transaction = 0; transaction < 3; ++transaction) {
    counter_.begin_transaction(1);
    for (int i = 0; i < 5; ++i) counter_.access(1, page(1), 8, true);
    counter_.access(1, page(2), 8, false);
  }
  EXPECT_EQ(counts(1, Home::own_node).lines, 3u);
  EXPECT_EQ(counts(1, Home::other_node).lines, 3u);
  EXPECT_EQ(counts(1, Home::own_node).accesses, 15u);
}

TEST_F(LineCounts, FollowTheCachesBeforeTheCountBegins) {
  LineCounter counter(1, 2, {{page(1), kPage, 0}});
  counter.access(0, page(1), 8, true);
  counter.access(1, page(1), 8, true);
  counter.start_counting();
  counter.access(0, page(1), 8, false);
  const HomeCounts& own = counter.counts_of(0)[static_cast<uint32_t>(Home::own_node)];
  EXPECT_EQ(own.misses, 1u);
  EXPECT_EQ(own.firsts, 0u);
}

TEST_F(LineCounts, NameTheLinesThatSeveralWorkersWrite) {
  counter_.access(0, page(1), 8, true);
  counter_.access(2, page(1), 8, true);
  counter_.access(0, page(1), 8, false);
  counter_.access(1, page(1) + 64, 8, true);
  counter_.access(1, page(1) + 64, 8, true);
  uint32_t lines = 0;
  counter_.for_each_used_line([&](const std::byte* line, const LineUse& use) {
    ++lines;
    EXPECT_EQ(use.is_contended, line == page(1));
    EXPECT_EQ(use.writes, 2u);
    EXPECT_EQ(use.misses_own, line == page(1) ? 1u : 0u);
    EXPECT_EQ(use.firsts_other, line == page(1) ? 1u : 0u);
    EXPECT_EQ(use.firsts_of_dirty, line == page(1) ? 1u : 0u);
  });
  EXPECT_EQ(lines, 2u);
}

TEST_F(LineCounts, CountFirstAccessesToDirtyLinesTwice) {
  counter_.access(0, page(1), 8, true);
  counter_.access(2, page(1), 8, false);
  counter_.access(3, page(1), 8, false);
  EXPECT_EQ(counts(0, Home::own_node).firsts, 1u);
  EXPECT_EQ(counts(0, Home::own_node).firsts_of_dirty, 0u);
  EXPECT_EQ(counts(2, Home::other_node).firsts, 1u);
  EXPECT_EQ(counts(2, Home::other_node).firsts_of_dirty, 1u);
  EXPECT_EQ(counts(3, Home::other_node).firsts_of_dirty, 0u);
}

TEST_F(LineCounts, KeepTheClockOutOfTheLines) {
  const uint32_t clock = counter_.clock();
  counter_.access(0, page(1), 8, true);
  counter_.access(clock, page(1), 8, true);
  counter_.access(clock, page(1) + 64, 8, true);
  counter_.access(0, page(1), 8, true);
  EXPECT_EQ(counts(clock, Home::other_node).writes, 2u);
  EXPECT_EQ(counts(clock, Home::other_node).firsts_of_dirty, 1u);
  EXPECT_EQ(counts(0, Home::own_node).misses, 1u);
  uint32_t lines = 0;
  counter_.for_each_used_line([&](const std::byte* line, const LineUse& use) {
    ++lines;
    EXPECT_EQ(line, page(1));
    EXPECT_EQ(use.writes, 2u);
    EXPECT_EQ(use.fetches(), 1u);
    EXPECT_FALSE(use.is_contended);
  });
  EXPECT_EQ(lines, 1u);
}

TEST(LineCounter, CountsEachOfManyLinesOnce) {
  constexpr uint64_t kPages = 1'000;
  struct alignas(kPage) Page {
    std::byte bytes[kPage];
  };
  const auto pages = std::make_unique<Page[]>(kPages);
  LineCounter counter(1, 1, {{&pages[0].bytes[0], kPages * kPage, 0}});
  counter.start_counting();
  const HomeCounts& own = counter.counts_of(0)[static_cast<uint32_t>(Home::own_node)];
  for (uint64_t transaction = 1; transaction <= 2; ++transaction) {
    counter.begin_transaction(0);
    for (int i = 0; i < 2; ++i) {
      for (uint64_t page = 0; page < kPages; ++page) {
        counter.access(0, &pages[page].bytes[0], kPage, false);
      }
    }
    EXPECT_EQ(own.lines, transaction * kPages * kPage / kLineBytes);
  }
}

}  // namespace
}  // namespace atolldb::bench
