// Drop policy of the installer: pages are dropped only under memory pressure, no more than needed,
// and hot ones last.
#include "soc/installer/drop_policy.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr DropLimits kAnyPage{.free_percent = 40};
constexpr DropLimits kSparesHot{.free_percent = 40, .spares_hot = true};

/// Any page of the node: the policy reads only its header.
struct SomePage : PageHeader {
  explicit SomePage(uint32_t node, bool is_hot = false) : PageHeader{} {
    self = VolatilePointer::make(node, 0, 1).word();
    reference_bit = is_hot ? 1 : 0;
  }
};

class DropPolicyTest : public testing::Test {
 protected:
  DropPolicyTest() : cluster_(2, 1, options()) {}

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
  static bool drops(DropPolicy& policy, uint32_t node, uint64_t retired) {
    SomePage page(node);
    return policy.judge(page, retired) == DropVerdict::drop;
  }
  /// Expects that the page is kept, and that its reference bit is cleared.
  static void expect_spared(DropPolicy& policy, PageHeader& page) {
    EXPECT_EQ(policy.judge(page, 0), DropVerdict::keep_hot);
    EXPECT_EQ(page.reference_bit.load(std::memory_order_relaxed), 0);
  }
  static uint64_t count_of(DropPolicy& policy, uint32_t node, uint64_t retired_before) {
    uint64_t count = 0;
    while (drops(policy, node, retired_before + count)) ++count;
    return count;
  }
  /// Returns true if node 0 reaches this percentage of free pages with `went` more pages, but not
  /// with one less.
  bool makes_up(uint64_t went, uint64_t percent) {
    const uint64_t total = cluster_.pool(0).page_count();
    const uint64_t free = cluster_.pool(0).free_count() + went;
    return free * 100 >= total * percent && (free - 1) * 100 < total * percent;
  }

  TestCluster cluster_;
  DropsOnTheirWay dropped_;
  std::vector<uint32_t> taken_[2];
};

TEST_F(DropPolicyTest, NothingIsDroppedWhereEnoughIsFree) {
  leave_free(0, 60);
  DropPolicy policy(cluster_.view(), kAnyPage, dropped_);
  EXPECT_FALSE(drops(policy, 0, 0));
  EXPECT_FALSE(drops(policy, 1, 0));
}

TEST_F(DropPolicyTest, PagesAreDroppedUntilThoseInFlightMakeUpWhatIsMissing) {
  leave_free(0, 10);
  DropPolicy policy(cluster_.view(), kAnyPage, dropped_);
  const uint64_t went = count_of(policy, 0, 0);
  EXPECT_TRUE(makes_up(went, 40)) << went;
  EXPECT_FALSE(drops(policy, 1, went)) << "the other node has enough";
}

TEST_F(DropPolicyTest, TheInstallersOfANodeCountTheirPagesTogether) {
  leave_free(0, 10);
  DropPolicy policy(cluster_.view(), kAnyPage, dropped_);
  DropPolicy other(cluster_.view(), kAnyPage, dropped_);
  uint64_t went = 0;
  while (drops(went % 2 == 0 ? policy : other, 0, went)) ++went;
  EXPECT_TRUE(makes_up(went, 40)) << went;
  EXPECT_FALSE(drops(policy, 0, went));
  EXPECT_FALSE(drops(other, 0, went));
}

TEST_F(DropPolicyTest, PagesThatHaveArrivedCountOnceAndPagesThatAreTakenMakeRoomForMore) {
  leave_free(0, 10);
  DropPolicy policy(cluster_.view(), kAnyPage, dropped_);
  const uint64_t went = count_of(policy, 0, 0);
  ASSERT_GT(went, 10u);
  // Returns as many pages to the pool as were dropped.
  for (uint64_t i = 0; i < went; ++i) {
    cluster_.pool(0).give(&taken_[0].back(), 1);
    taken_[0].pop_back();
  }
  EXPECT_FALSE(drops(policy, 0, 0));
  leave_free(0, 30);
  EXPECT_GT(count_of(policy, 0, 0), 0u);
}

TEST_F(DropPolicyTest, AHotPageIsSparedOnceAndLosesItsReferenceBit) {
  leave_free(0, 10);
  DropPolicy policy(cluster_.view(), kSparesHot, dropped_);
  SomePage page(0, true);
  expect_spared(policy, page);
  DropPolicy next(cluster_.view(), kSparesHot, dropped_);
  EXPECT_EQ(next.judge(page, 0), DropVerdict::drop) << "it was not used since";
}

TEST_F(DropPolicyTest, ReferenceBitsAreClearedWithoutPressureToo) {
  leave_free(0, 60);
  DropPolicy policy(cluster_.view(), kSparesHot, dropped_);
  SomePage page(0, true);
  expect_spared(policy, page);
  EXPECT_EQ(policy.judge(page, 0), DropVerdict::keep);
}

TEST_F(DropPolicyTest, MarksDoNotMatterIfNoneIsSpared) {
  leave_free(0, 10);
  DropPolicy policy(cluster_.view(), kAnyPage, dropped_);
  SomePage page(0, true);
  EXPECT_EQ(policy.judge(page, 0), DropVerdict::drop);
}

}  // namespace
}  // namespace atolldb::test
