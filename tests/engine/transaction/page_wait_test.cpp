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

}  // namespace
}  // namespace atolldb::test
