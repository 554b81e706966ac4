// Page pools: pages are taken, retired, held until their grace period is over (R9), returned to
// their node's pool, and none is lost.
#include "shared/memory/page_pool.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

constexpr uint64_t kPoolBytes = uint64_t{1} << 20;

class PagePools : public testing::Test {
 protected:
  PageAllocator& pages(uint32_t node) { return cluster_.worker(node).context->pages(); }
  WorkerContext& context(uint32_t node) { return *cluster_.worker(node).context; }

  std::vector<PageHeader*> take_all(uint32_t node) {
    std::vector<PageHeader*> taken;
    while (PageHeader* page = pages(node).take()) taken.push_back(page);
    return taken;
  }
  /// Moves every thread to a new epoch, and lets the coordinator see that.
  void pass_grace() {
    for (int i = 0; i < 2; ++i) {
      cluster_.tick();
      for (uint32_t node = 0; node < 2; ++node) context(node).enter();
    }
    cluster_.tick();
  }
  void release_all_workers() {
    for (uint32_t node = 0; node < 2; ++node) {
      context(node).leave();
      pages(node).flush();
    }
    for (uint32_t node = 0; node < 2; ++node) cluster_.pool(node).collect_returns();
  }

  TestCluster cluster_{2, 1, {.pool_bytes = kPoolBytes, .clock = false}};
};

TEST_F(PagePools, AnEmptyPoolSaysSoAndRecovers) {
  const uint64_t all = cluster_.pool(0).free_count();
  const std::vector<PageHeader*> taken = take_all(0);
  EXPECT_EQ(taken.size(), all);
  EXPECT_EQ(pages(0).take(), nullptr);
  EXPECT_FALSE(pages(0).reserve(1));
  // The other node's pool is separate.
  EXPECT_TRUE(pages(1).reserve(1));
  for (PageHeader* page : taken) pages(0).give_back(page);
  EXPECT_TRUE(pages(0).reserve(PageAllocator::kMaxReserve));
  release_all_workers();
  EXPECT_EQ(cluster_.pool(0).free_count(), all);
}

TEST_F(PagePools, BatchesAreSmallUnderALimit) {
  NodeShared& node = *cluster_.view().shared[0];
  const auto batch = [&](uint64_t limit) {
    node.page_limit.store(limit, std::memory_order_relaxed);
    return cluster_.pool(0).batch_pages();
  };
  EXPECT_EQ(batch(0), PagePool::kBatchPages) << "no limit";
  EXPECT_EQ(batch(1), PagePool::kFewestPages);
  EXPECT_EQ(batch(1'000), 10u);
  EXPECT_EQ(batch(1'000'000), PagePool::kBatchPages);
  batch(1'000);
  const uint64_t before = cluster_.pool(0).free_count();
  EXPECT_TRUE(pages(0).reserve(1));
  EXPECT_EQ(cluster_.pool(0).free_count(), before - 10);
  EXPECT_TRUE(pages(0).reserve(PageAllocator::kMaxReserve)) << "a larger need is met at once";
}

/// Installers need a few pages to free many, so transactions leave some.
TEST(PagePool, KeepsAReserveForInstallers) {
  constexpr uint64_t kBytes = uint64_t{32} << 20;
  TestCluster cluster(1, 1, {.pool_bytes = kBytes, .clock = false});
  PagePool& pool = cluster.pool(0);
  const uint64_t reserved = PagePool::reserved_of(pool.page_count());
  EXPECT_EQ(reserved, PagePool::kBatchPages);
  EXPECT_EQ(pool.free_for_demand(), pool.page_count() - reserved);
  uint32_t page = 0;
  uint64_t taken = 0;
  while (pool.grab(&page, 1) == 1) ++taken;
  EXPECT_EQ(taken, pool.page_count() - reserved);
  EXPECT_EQ(pool.free_for_demand(), 0u);
  for (uint64_t i = 0; i < reserved; ++i) EXPECT_EQ(pool.grab(&page, 1, /*is_demand=*/false), 1u);
  EXPECT_EQ(pool.grab(&page, 1, /*is_demand=*/false), 0u);
  EXPECT_EQ(PagePool::reserved_of(128 * PagePool::kBatchPages - 1), 0u) << "small pools have none";
}

TEST_F(PagePools, OnlyUsedPagesCountAsTakenAndArePaidByTheBatch) {
  const auto taken = [&] {
    return cluster_.view().shared[0]->pages_taken.load(std::memory_order_relaxed);
  };
  const uint64_t before = taken();
  for (uint32_t used = 1; used <= PagePool::kBatchPages; ++used) {
    EXPECT_FALSE(pages(0).owes_pages()) << used;
    ASSERT_NE(pages(0).take(), nullptr);
    EXPECT_EQ(taken(), before + used - 1 + PagePool::kBatchPages);
    pages(0).flush();
    EXPECT_EQ(taken(), before + used) << "the others were given back unused";
  }
  EXPECT_TRUE(pages(0).owes_pages());
  EXPECT_EQ(pages(0).take_unpaid(), PagePool::kBatchPages);
  EXPECT_FALSE(pages(0).owes_pages());
}

TEST_F(PagePools, PagesThatAThreadHasRecycledCostNothing) {
  PageHeader* page = pages(0).take();
  ASSERT_NE(page, nullptr);
  pages(0).flush();
  ASSERT_EQ(pages(0).take_unpaid(), 1u);
  pages(0).give_back(page);
  ASSERT_EQ(pages(0).take(), page);
  EXPECT_EQ(pages(0).take_unpaid(), 0u);
}

/// Without a limit, pages in the return rings wait for the node's next heartbeat.
TEST_F(PagePools, ALimitLetsEachBatchCollectWhatOtherNodesReturn) {
  PageHeader* page = pages(0).take();
  ASSERT_NE(page, nullptr);
  const uint64_t before = cluster_.pool(0).free_count();
  ASSERT_TRUE(cluster_.pool(1).free_remote(page->volatile_self()));
  uint32_t index = 0;
  ASSERT_EQ(cluster_.pool(0).grab(&index, 1), 1u);
  EXPECT_EQ(cluster_.pool(0).free_count(), before - 1);
  cluster_.view().shared[0]->page_limit.store(1'000, std::memory_order_relaxed);
  ASSERT_EQ(cluster_.pool(0).grab(&index, 1), 1u);
  EXPECT_EQ(cluster_.pool(0).free_count(), before - 1);
}

TEST_F(PagePools, NoPageIsHandedOutTwiceNorIsTheControlBlock) {
  std::set<PageHeader*> seen;
  for (PageHeader* page : take_all(0)) {
    EXPECT_TRUE(seen.insert(page).second);
    EXPECT_NE(page->volatile_self().index(), 0u);
    EXPECT_EQ(page->volatile_self().node(), 0u);
    EXPECT_EQ(cluster_.view().resolve(page->volatile_self()), page);
  }
  EXPECT_EQ(seen.size(), cluster_.pool(0).page_count());
}

TEST_F(PagePools, AReservationMakesTheNextTakesSucceed) {
  ASSERT_TRUE(pages(0).reserve(PageAllocator::kMaxReserve));
  for (uint32_t i = 0; i < PageAllocator::kMaxReserve; ++i) EXPECT_NE(pages(0).take(), nullptr);
}

TEST_F(PagePools, ARecycledPageHasANewGenerationAndACleanHeader) {
  PageHeader* page = pages(0).take();
  const VolatilePointer before = page->volatile_self();
  page->set_version(PageVersion::make(5, 5, PageVersion::kMoved));
  page->max_removed_vid.store(99, std::memory_order_relaxed);
  pages(0).give_back(page);
  PageHeader* again = pages(0).take();
  ASSERT_EQ(again, page);
  EXPECT_EQ(again->volatile_self().index(), before.index());
  EXPECT_EQ(again->volatile_self().generation(), before.generation() + 1);
  EXPECT_EQ(again->version().word(), 0u);
  EXPECT_EQ(again->max_removed_vid.load(std::memory_order_relaxed), 0u);
}

TEST_F(PagePools, ARetiredPageWaitsForTheOldestReader) {
  context(1).enter();  // a reader on another node, which stays in its epoch
  context(0).enter();
  PageHeader* page = pages(0).take();
  pages(0).retire(page);
  for (int i = 0; i < 20; ++i) {
    cluster_.tick();
    context(0).enter();
    pages(0).recycle();
    ASSERT_EQ(pages(0).retired_count(), 1u) << "reused under a reader, after tick " << i;
  }
  cluster_.tick();
  context(1).enter();  // the next transaction of this reader
  cluster_.tick();
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 0u);
}

TEST_F(PagePools, AnIdleThreadHoldsNothingBack) {
  context(1).enter();
  context(1).leave();
  PageHeader* page = pages(0).take();
  pages(0).retire(page);
  cluster_.tick();
  cluster_.tick();
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 0u);
}

TEST_F(PagePools, PagesAreRecycledOldestFirstAndOnlyAsFarAsGraceAllows) {
  auto everybody_enters = [&] {
    for (uint32_t node = 0; node < 2; ++node) context(node).enter();
  };
  everybody_enters();
  pages(0).retire(pages(0).take());
  cluster_.tick();
  everybody_enters();
  pages(0).retire(pages(0).take());
  EXPECT_EQ(pages(0).retired_count(), 2u);
  cluster_.tick();  // all threads have left the epoch of the first page, but not that of the second
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 1u);
}

TEST_F(PagePools, AForeignPageReturnsToItsPool) {
  const uint64_t free_before = cluster_.pool(1).free_count();
  PageHeader* page = pages(1).take();
  pages(0).retire(page);  // a worker of node 0 unlinked a page of node 1
  pass_grace();
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 0u);
  EXPECT_EQ(cluster_.metrics(0, 0).remote_frees.get(), 1u);
  release_all_workers();
  EXPECT_EQ(cluster_.pool(1).free_count(), free_before);
}

TEST_F(PagePools, AFullReturnRingKeepsThePageWithItsSender) {
  ReturnRing& ring = cluster_.view().shared[1]->return_ring(0);
  // Fills the ring with copies of a pointer that no test reads. The owner does not empty this ring.
  const VolatilePointer filler = VolatilePointer::make(1, 1, 1);
  while (ring.push(filler)) continue;
  PageHeader* page = pages(1).take();
  pages(0).retire(page);
  pass_grace();
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 1u);
  while (!ring.pop().is_null()) continue;
  pages(0).recycle();
  EXPECT_EQ(pages(0).retired_count(), 0u);
  EXPECT_EQ(ring.pop().index(), page->volatile_self().index());
}

TEST_F(PagePools, FreePagesEndWhereTheyBegan) {
  const uint64_t before[] = {cluster_.pool(0).free_count(), cluster_.pool(1).free_count()};
  for (int round = 0; round < 50; ++round) {
    for (uint32_t node = 0; node < 2; ++node) {
      for (int i = 0; i < 20; ++i) {
        PageHeader* page = pages(node).take();
        ASSERT_NE(page, nullptr) << "pages got lost by round " << round;
        // The worker that unlinks a page retires it, whatever pool it came from.
        pages(i % 2 == 0 ? node : 1 - node).retire(page);
      }
    }
    pass_grace();
    for (uint32_t node = 0; node < 2; ++node) pages(node).recycle();
  }
  release_all_workers();
  for (uint32_t node = 0; node < 2; ++node) {
    EXPECT_EQ(cluster_.pool(node).free_count(), before[node]) << "node " << node;
  }
}

#ifdef ATOLL_DCHECK
using PagePoolsDeathTest = PagePools;

TEST_F(PagePoolsDeathTest, ARetiredPageIsNeitherRetiredNorGivenBackAgain) {
  PageHeader* page = pages(0).take();
  pages(0).retire(page);
  EXPECT_DEATH(pages(0).retire(page), "check == 0");
  EXPECT_DEATH(pages(0).give_back(page), "check == 0");
}

TEST_F(PagePoolsDeathTest, APageOfAnotherNodeIsRetiredNotGivenBack) {
  PageHeader* page = pages(1).take();
  EXPECT_DEATH(pages(0).give_back(page), "node");
}
#endif

TEST(ReturnRing, PassesPagesInOrderBetweenTwoThreadsAcrossManyLaps) {
  auto ring = std::make_unique<ReturnRing>();
  constexpr uint32_t kPages = ReturnRing::kCapacity * 20;
  std::thread sender([&] {
    for (uint32_t i = 1; i <= kPages;) {
      if (ring->push(VolatilePointer::make(3, 0, i))) {
        ++i;
      } else {
        sched_yield();
      }
    }
  });
  uint32_t wrong = 0;
  for (uint32_t i = 1; i <= kPages;) {
    const VolatilePointer page = ring->pop();
    if (page.is_null()) {
      sched_yield();
      continue;
    }
    if (page.index() != i++) ++wrong;
  }
  sender.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(ring->pop().is_null());
}

TEST(ReturnRing, IsFullAtItsCapacity) {
  auto ring = std::make_unique<ReturnRing>();
  const VolatilePointer page = VolatilePointer::make(0, 0, 1);
  for (uint32_t i = 0; i < ReturnRing::kCapacity; ++i) ASSERT_TRUE(ring->push(page));
  EXPECT_FALSE(ring->push(page));
  EXPECT_FALSE(ring->pop().is_null());
  EXPECT_TRUE(ring->push(page));
}

}  // namespace
}  // namespace atolldb::test
