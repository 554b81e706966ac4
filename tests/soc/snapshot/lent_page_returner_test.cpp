// The thread that returns lent pages to the volatile pool (R81).
#include "soc/snapshot/lent_page_returner.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "tests/engine/snapshot/lent_rules.h"

namespace atolldb::test {
namespace {

/// Without a wake-up, each turn of a test would take the ten seconds of PagePool::await_reclaim.
constexpr std::chrono::seconds kWithoutWaits{8};

TEST(LentPageReturnerTest, ReturnsPagesWhenTransactionsNeedThem) {
  LendingPool test(1);
  const LentPageReturner returner(test.pool(), test.cache.cache);
  SnapshotReader reader(test.cache.cache, 0);
  const uint64_t all = test.pool().free_count();
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; turn < 5; ++turn) {
    for (uint32_t number = 1; number <= test.pages.count(); ++number) {
      const PageHeader* page = nullptr;
      ASSERT_EQ(reader.get(NumberedPages::pointer(number), page), Status::ok);
      ASSERT_TRUE(NumberedPages::is_page(page, number));
      reader.leave();
    }
    EXPECT_GT(test.pool().lent_count(), all / 2);
    std::vector<PageHeader*> taken;
    while (taken.size() != all) {
      if (PageHeader* page = test.allocator().take()) {
        taken.push_back(page);
      } else {
        std::this_thread::yield();
      }
    }
    EXPECT_EQ(test.pool().lent_count(), 0u);
    test.give_back(taken);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kWithoutWaits);
}

TEST(LentPageReturnerTest, EndsWhileItWaits) {
  LendingPool test(1);
  const auto begin = std::chrono::steady_clock::now();
  for (int turn = 0; turn < 100; ++turn)
    const LentPageReturner returner(test.pool(), test.cache.cache);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kWithoutWaits);
  EXPECT_EQ(test.pool().lent_count(), 0u);
}

}  // namespace
}  // namespace atolldb::test
