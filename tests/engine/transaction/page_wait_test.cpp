// Waits for free pages: a worker that finds none waits at a point where it holds no lock, until
// snapshots have freed some (R23).
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "engine/mastertree/mastertree.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {
namespace {

class PageWaitTest : public testing::Test {
 protected:
  PageWaitTest() : cluster_(1, 1, options()), tree_(cluster_.create("t", StorageType::mastertree)) {
    // Empties the pool, as if other workers had taken all pages.
    uint32_t page = 0;
    while (cluster_.pool(0).grab(&page, 1) == 1) taken_.push_back(page);
  }

  static TestClusterOptions options() {
    TestClusterOptions options;
    options.pool_bytes = uint64_t{2} << 20;
    return options;
  }
  ControlSegment& control() { return *cluster_.view().control; }
  void let_snapshots_free_pages(uint32_t helps) {
    control().snapshots_free_pages.store(helps, std::memory_order_relaxed);
  }
  Status insert(uint64_t deadline_epoch = kMaxEpoch) {
    TestWorker& worker = cluster_.worker(0);
    const std::byte key[8] = {};
    return run(*worker.transaction, worker.backoff, deadline_epoch, [&](Transaction& txn) {
      ++attempts_;
      return tree_.insert(txn, key, key);
    });
  }
  /// Runs `action` on another thread, once the worker waits.
  template <typename Action>
  std::jthread when_it_waits(Action action) {
    return std::jthread([this, action] {
      while (stalls() == 0) std::this_thread::yield();
      action();
    });
  }
  uint64_t stalls() { return cluster_.metrics(0, 0).page_stalls.get(); }

  TestCluster cluster_;
  MasterTree tree_;
  std::vector<uint32_t> taken_;
  uint32_t attempts_ = 0;
};

TEST_F(PageWaitTest, WithoutSnapshotsTheAnswerComesAtOnce) {
  EXPECT_EQ(insert(), Status::volatile_pool_exhausted);
  EXPECT_EQ(attempts_, 1u);
  EXPECT_EQ(stalls(), 0u);
}

TEST_F(PageWaitTest, WaitsWithoutHoldingBackPagesAndContinuesWhenSomeAreFree) {
  let_snapshots_free_pages(1);
  uint64_t begin_epoch = 0;
  const std::jthread gleaner = when_it_waits([&] {
    begin_epoch = cluster_.view().shared[0]->slot(0).begin_epoch.load(std::memory_order_seq_cst);
    cluster_.pool(0).give(taken_.data(), static_cast<uint32_t>(taken_.size()));
  });
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(attempts_, 2u);
  EXPECT_EQ(stalls(), 1u);
  EXPECT_EQ(begin_epoch, kIdleEpoch);
}

/// R81: the pages that the snapshot cache has come back soon, also if no snapshot frees pages.
TEST_F(PageWaitTest, WaitsForLentPagesWithoutSnapshots) {
  PagePool& pool = cluster_.pool(0);
  constexpr uint32_t kLent = 200;
  pool.give(taken_.data(), 2 * kLent);
  std::vector<uint32_t> lent(kLent);
  ASSERT_EQ(pool.lend(lent.data(), kLent), kLent);
  uint32_t page = 0;
  while (pool.grab(&page, 1) == 1) {
  }
  const std::jthread returner =
      when_it_waits([&] { pool.take_back(lent.data(), static_cast<uint32_t>(lent.size())); });
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(attempts_, 2u);
  EXPECT_EQ(stalls(), 1u);
  EXPECT_EQ(pool.lent_count(), 0u);
}

/// Under a limit, other transactions take each page that becomes free. One that has waited must not
/// need many at once.
TEST_F(PageWaitTest, FewPagesAreEnoughForOneThatHasWaited) {
  let_snapshots_free_pages(1);
  const std::jthread installer =
      when_it_waits([&] { cluster_.pool(0).give(taken_.data(), PagePool::kFewestToContinue); });
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(stalls(), 1u);
}

TEST_F(PageWaitTest, CallsTheHookOfTheWorkerWhileItWaits) {
  let_snapshots_free_pages(1);
  uint32_t calls = 0;
  cluster_.worker(0).context->set_wait_hook([&] {
    if (++calls == 3) cluster_.pool(0).give(taken_.data(), static_cast<uint32_t>(taken_.size()));
  });
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_GE(calls, 3u);
}

TEST_F(PageWaitTest, IsToldWhenTwoSnapshotsHaveBroughtNothing) {
  let_snapshots_free_pages(1);
  const std::jthread gleaner = when_it_waits([&] {
    for (int i = 0; i < 2; ++i) {
      control().unproductive_snapshots.fetch_add(1, std::memory_order_relaxed);
      wake(control().unproductive_snapshots, kWakeAll);
    }
  });
  EXPECT_EQ(insert(), Status::volatile_pool_exhausted);
  EXPECT_EQ(attempts_, 1u);
}

TEST_F(PageWaitTest, EndsWithItsDeadline) {
  let_snapshots_free_pages(1);
  const uint64_t deadline = control().epochs.current.load(std::memory_order_relaxed) + 20;
  EXPECT_EQ(insert(deadline), Status::volatile_pool_exhausted);
  EXPECT_GE(control().epochs.current.load(std::memory_order_relaxed), deadline);
}

TEST_F(PageWaitTest, EndsWhenTheGleanerDoesOrTheClusterFails) {
  let_snapshots_free_pages(1);
  {
    const std::jthread coordinator = when_it_waits([&] { let_snapshots_free_pages(0); });
    EXPECT_EQ(insert(), Status::volatile_pool_exhausted);
  }
  let_snapshots_free_pages(1);
  const uint64_t before = stalls();
  const std::jthread failure([&] {
    while (stalls() == before) std::this_thread::yield();
    control().state.store(static_cast<uint32_t>(ClusterState::stopped), std::memory_order_release);
  });
  EXPECT_EQ(insert(), Status::volatile_pool_exhausted);
}

/// A pool with pages, and a limit for how fast workers take them.
class PageBudgetWaitTest : public PageWaitTest {
 protected:
  PageBudgetWaitTest() {
    cluster_.pool(0).give(taken_.data(), static_cast<uint32_t>(taken_.size()));
    let_snapshots_free_pages(1);
    set_budget(0);
    // Uses a batch of pages, for which the next transaction pays.
    PageAllocator& pages = cluster_.worker(0).context->pages();
    for (uint32_t i = 0; i < PagePool::kBatchPages; ++i) EXPECT_NE(pages.take(), nullptr);
    EXPECT_TRUE(pages.owes_pages());
  }

  NodeShared& node() { return *cluster_.view().shared[0]; }
  void set_budget(int64_t pages) {
    node().page_budget.store(pages, std::memory_order_relaxed);
    node().page_signal.fetch_add(1, std::memory_order_relaxed);
    wake(node().page_signal, kWakeAll);
  }
  int64_t budget() { return node().page_budget.load(std::memory_order_relaxed); }
  uint64_t delays() { return cluster_.metrics(0, 0).page_delays.get(); }
  uint64_t delay_ns() { return cluster_.metrics(0, 0).page_delay_ns.get(); }
};

TEST_F(PageBudgetWaitTest, PagesWithinTheBudgetDelayNobody) {
  set_budget(PagePool::kBatchPages);
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(budget(), 0);
  EXPECT_EQ(delays(), 0u);
}

TEST_F(PageBudgetWaitTest, AWorkerWithoutBudgetWaitsUntilItIsGranted) {
  set_budget(PagePool::kBatchPages - 1);
  uint64_t begin_epoch = 0;
  std::jthread coordinator([&] {
    while (delays() == 0) std::this_thread::yield();
    begin_epoch = node().slot(0).begin_epoch.load(std::memory_order_seq_cst);
    set_budget(0);
  });
  EXPECT_EQ(insert(), Status::ok);
  coordinator.join();
  EXPECT_EQ(delays(), 1u);
  EXPECT_GT(delay_ns(), 0u);
  EXPECT_EQ(begin_epoch, kIdleEpoch) << "it holds back no page meanwhile";
}

TEST_F(PageBudgetWaitTest, TheNextTransactionsWaitForTheRest) {
  // The limit grants the owed pages in 8 ms.
  node().page_limit.store(PagePool::kBatchPages * 125, std::memory_order_relaxed);
  const uint64_t whole = static_cast<uint64_t>(std::chrono::nanoseconds(kMaxPageDelay).count());
  const uint64_t part = static_cast<uint64_t>(std::chrono::nanoseconds(kMinDelayAtOnce).count());
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(delays(), 1u);
  EXPECT_GE(delay_ns(), part);
  for (uint64_t i = 2; delay_ns() < whole; ++i) {
    EXPECT_EQ(insert(), Status::already_exists);
    ASSERT_EQ(delays(), i);
    ASSERT_LE(i, whole / part) << "each part is that long";
  }
  const uint64_t last = delays();
  EXPECT_EQ(insert(), Status::already_exists);
  EXPECT_EQ(delays(), last) << "the pages are paid";
}

TEST_F(PageBudgetWaitTest, ALargerDebtDelaysEachTransactionLonger) {
  // The limit grants the owed pages in 32 ms.
  node().page_limit.store(PagePool::kBatchPages * 1000 / 32, std::memory_order_relaxed);
  EXPECT_EQ(insert(), Status::ok);
  const uint64_t whole = static_cast<uint64_t>(std::chrono::nanoseconds(kMaxPageDelay).count());
  EXPECT_GE(delay_ns(), whole / 2);
  const bool is_paid = delay_ns() >= whole;  // the thread got no processor for so long
  EXPECT_EQ(insert(), Status::already_exists);
  EXPECT_EQ(delays(), is_paid ? 1u : 2u);
}

TEST_F(PageBudgetWaitTest, AGrantEndsTheRestOfTheWait) {
  node().page_limit.store(PagePool::kBatchPages * 125, std::memory_order_relaxed);
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(delays(), 1u);
  set_budget(0);
  EXPECT_EQ(insert(), Status::already_exists);
  EXPECT_EQ(insert(), Status::already_exists);
  EXPECT_EQ(delays(), 1u);
}

TEST_F(PageBudgetWaitTest, TheWaitEndsAfterItsLimitAndCallsTheHook) {
  uint32_t calls = 0;
  cluster_.worker(0).context->set_wait_hook([&] { ++calls; });
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_GE(calls, 1u);
  EXPECT_EQ(delays(), 1u);
  EXPECT_GE(delay_ns(), static_cast<uint64_t>(std::chrono::nanoseconds(kMaxPageDelay).count()));
  EXPECT_EQ(insert(), Status::already_exists);
  EXPECT_EQ(delays(), 1u) << "it took no more pages";
}

TEST_F(PageBudgetWaitTest, TheWaitIsLongerWhilePagesAreScarce) {
  node().pages_total.store(uint64_t{1} << 40, std::memory_order_relaxed);
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_EQ(delays(), 1u);
  EXPECT_GE(delay_ns(), static_cast<uint64_t>(std::chrono::nanoseconds(kMaxScarceDelay).count()));
}

TEST_F(PageBudgetWaitTest, NoWorkerWaitsWhenNoSnapshotFreesPages) {
  let_snapshots_free_pages(0);
  EXPECT_EQ(insert(), Status::ok);
  EXPECT_LT(delay_ns(), static_cast<uint64_t>(std::chrono::nanoseconds(kMaxPageDelay).count()));
}

}  // namespace
}  // namespace atolldb::test
