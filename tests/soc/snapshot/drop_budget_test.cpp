// Pages go under pressure alone, and no more of them than that takes.
#include "soc/snapshot/drop_budget.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

class DropBudgetTest : public testing::Test {
 protected:
  DropBudgetTest() : cluster_(2, 1, options()) {}

  static TestClusterOptions options() {
    TestClusterOptions options;
    options.pool_bytes = uint64_t{4} << 20;
    options.clock = false;
    return options;
  }
  /// Takes pages of the node until `percent` are free.
  void leave_free(uint32_t node, uint64_t percent) {
    PagePool& pool = cluster_.pool(node);
    uint32_t page = 0;
    while (pool.free_count() * 100 > pool.page_count() * percent) {
      ASSERT_EQ(pool.grab(&page, 1), 1u);
      taken_[node].push_back(page);
    }
  }
  uint64_t count_of(DropBudget& budget, uint32_t node, uint64_t retired_before) {
    uint64_t count = 0;
    while (budget.allows(node, retired_before + count)) ++count;
    return count;
  }

  TestCluster cluster_;
  std::vector<uint32_t> taken_[2];
};

TEST_F(DropBudgetTest, NothingGoesWhereEnoughIsFree) {
  leave_free(0, 60);
  DropBudget budget(cluster_.view(), 40);
  EXPECT_FALSE(budget.allows(0, 0));
  EXPECT_FALSE(budget.allows(1, 0));
}

TEST_F(DropBudgetTest, PagesGoUntilThoseOnTheirWayMakeUpWhatIsMissing) {
  leave_free(0, 10);
  DropBudget budget(cluster_.view(), 40);
  const uint64_t total = cluster_.pool(0).page_count();
  const uint64_t went = count_of(budget, 0, 0);
  EXPECT_GE((cluster_.pool(0).free_count() + went) * 100, total * 40);
  EXPECT_LT((cluster_.pool(0).free_count() + went - 1) * 100, total * 40);
  EXPECT_FALSE(budget.allows(1, went)) << "the other node has enough";
}

TEST_F(DropBudgetTest, PagesThatHaveArrivedCountOnceAndPagesThatAreTakenMakeRoomForMore) {
  leave_free(0, 10);
  DropBudget budget(cluster_.view(), 40);
  const uint64_t went = count_of(budget, 0, 0);
  ASSERT_GT(went, 10u);
  // All of them are back in the pool.
  for (uint64_t i = 0; i < went; ++i) {
    cluster_.pool(0).give(&taken_[0].back(), 1);
    taken_[0].pop_back();
  }
  EXPECT_FALSE(budget.allows(0, 0));
  leave_free(0, 30);
  EXPECT_GT(count_of(budget, 0, 0), 0u);
}

}  // namespace
}  // namespace atolldb::test
