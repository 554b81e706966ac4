// Commit counter of benchmarks: which commits it counts, and when.
#include "bench/job/commit_counter.h"

#include <gtest/gtest.h>

#include "tests/support/test_cluster.h"

namespace atolldb::bench {
namespace {

class CommitCounterTest : public testing::Test {
 protected:
  CommitCounterTest() {
    cluster_.view().shared[0]->logger_count = 1;
    epochs().durable.store(9, std::memory_order_relaxed);
    counter_ = std::make_unique<CommitCounter>(*cluster_.worker(0).context, clock_);
  }
  static test::TestClusterOptions options() {
    test::TestClusterOptions options;
    options.clock = false;
    options.start_epoch = 10;
    return options;
  }
  EpochBlock& epochs() { return cluster_.view().control->epochs; }
  void make_durable(uint64_t epoch) {
    epochs().durable.store(epoch, std::memory_order_release);
    epochs().durable_signal.fetch_add(1, std::memory_order_release);
  }
  /// Counts a commit of a group of its own.
  void count(uint32_t type, uint64_t epoch) {
    now_ += clock_.from_ns(CommitCounter::kGroupNs) + 1;
    counter_->count(result_, type, now_, now_, epoch);
  }
  /// Counts a commit that ends right after the last one.
  void count_in_group(uint32_t type, uint64_t epoch) {
    ++now_;
    counter_->count(result_, type, now_, now_, epoch);
  }

  test::TestCluster cluster_{1, 1, options()};
  TickClock clock_;
  std::unique_ptr<CommitCounter> counter_;
  WorkerResult result_{2};
  uint64_t now_ = clock_.ticks();
};

TEST_F(CommitCounterTest, ACommitCountsWhenItsEpochIsDurable) {
  count(0, 10);
  count(1, 10);
  EXPECT_EQ(result_.total_commits(), 0U);
  EXPECT_EQ(result_.latency[0].count(), 1U) << "to the commit it is known";
  make_durable(10);
  count(0, 11);
  EXPECT_EQ(result_.commits[0], 1U);
  EXPECT_EQ(result_.commits[1], 1U);
  EXPECT_EQ(result_.durable_latency[1].count(), 1U);
  EXPECT_EQ(result_.epoch_wait.count(), 2U);
  EXPECT_EQ(result_.log_wait.count(), 2U);
}

TEST_F(CommitCounterTest, WhatIsDurableAlreadyCountsWhenItsGroupEnds) {
  count(1, 9);
  EXPECT_EQ(result_.commits[1], 0U);
  counter_->poll(result_, now_);
  EXPECT_EQ(result_.commits[1], 1U) << "a read-only one of old data";
  counter_->poll(result_, now_);
  EXPECT_EQ(result_.commits[1], 1U) << "counted twice";
}

TEST_F(CommitCounterTest, CommitsOfAGroupWaitForItsLatestEpoch) {
  count(0, 10);
  count_in_group(0, 3);
  count_in_group(1, 10);
  make_durable(9);
  counter_->poll(result_, now_);
  EXPECT_EQ(result_.total_commits(), 0U);
  make_durable(10);
  counter_->poll(result_, now_ + 1'000);
  EXPECT_EQ(result_.commits, (std::vector<uint64_t>{2, 1}));
  EXPECT_EQ(result_.durable_latency[0].count(), 2U);
  EXPECT_EQ(result_.epoch_wait.count(), 3U);
  EXPECT_EQ(result_.log_wait.count(), 3U);
}

TEST_F(CommitCounterTest, ALongTransactionOfDurableDataCountsAtOnce) {
  const uint64_t length = clock_.from_ns(CommitCounter::kGroupNs);
  counter_->count(result_, 0, now_, now_ + length, 9);
  EXPECT_EQ(result_.commits[0], 1U);
  EXPECT_EQ(result_.durable_latency[0].max_ns(), result_.latency[0].max_ns());
}

TEST_F(CommitCounterTest, ALaterEpochBeginsAGroup) {
  count(0, 10);
  count_in_group(0, 11);
  make_durable(10);
  counter_->poll(result_, now_);
  EXPECT_EQ(result_.commits[0], 1U) << "the commit of epoch 10 does not wait for epoch 11";
}

TEST_F(CommitCounterTest, TheLatencyOfAGroupIsOffByLessThanItsLength) {
  const uint64_t length = clock_.from_ns(CommitCounter::kGroupNs);
  const uint64_t start = now_;
  counter_->count(result_, 0, start, start + 1, 10);
  counter_->count(result_, 0, start + 1, start + length - 1, 10);
  counter_->count(result_, 0, start + length - 1, start + 100 * length, 10);
  counter_->count(result_, 0, start + 100 * length, start + 100 * length + 1, 10);
  make_durable(10);
  counter_->poll(result_, start + 200 * length);
  const LatencyHistogram& latency = result_.durable_latency[0];
  EXPECT_EQ(latency.count(), 4U);
  // The long transaction has its own group, so the last commit has not its begin.
  EXPECT_EQ(latency.count_below(150 * CommitCounter::kGroupNs), 1U);
}

TEST_F(CommitCounterTest, WhatBecomesDurableAfterTheEndDoesNotCount) {
  counter_->set_end(now_);
  count(0, 10);
  make_durable(10);
  count(0, 10);
  EXPECT_EQ(result_.total_commits(), 0U);
}

TEST_F(CommitCounterTest, WithoutALogACommitCountsAtOnce) {
  cluster_.view().shared[0]->logger_count = 0;
  CommitCounter counter(*cluster_.worker(0).context, clock_);
  counter.count(result_, 0, 1, 2, 1'000);
  EXPECT_EQ(result_.commits[0], 1U);
  EXPECT_EQ(result_.durable_latency[0].count(), 0U);
}

TEST_F(CommitCounterTest, ATimeWithoutADurableCommitIsAPause) {
  const uint64_t start = clock_.ticks();
  const uint64_t step = clock_.from_ns(2 * kShortestPauseNs);
  counter_->start_pauses(start);
  const auto commit_at = [&](uint64_t at, uint64_t epoch) {
    counter_->count(result_, 0, at, at, epoch);
  };
  commit_at(start + step, 10);  // durable only at the next commit
  make_durable(10);
  commit_at(start + 2 * step, 11);
  commit_at(start + 4 * step, 11);
  EXPECT_EQ(counter_->finish_pauses(start + 5 * step),
            (Pauses{{start, start + 2 * step}, {start + 2 * step, start + 5 * step}}));
}

TEST_F(CommitCounterTest, WithoutALogAPauseEndsAtTheCommit) {
  cluster_.view().shared[0]->logger_count = 0;
  CommitCounter counter(*cluster_.worker(0).context, clock_);
  const uint64_t start = clock_.ticks();
  const uint64_t step = clock_.from_ns(2 * kShortestPauseNs);
  counter.start_pauses(start);
  counter.count(result_, 0, start, start + step, 1'000);
  EXPECT_EQ(counter.finish_pauses(start + step), (Pauses{{start, start + step}}));
}

TEST_F(CommitCounterTest, AFullQueueWaitsForTheDevice) {
  // One place of the ring is for the open group.
  for (uint32_t i = 0; i < CommitCounter::kCapacity; ++i) count(0, 10);
  EXPECT_EQ(result_.commits[0], 0U);
  std::thread device([this] { make_durable(10); });
  count(0, 11);
  device.join();
  EXPECT_EQ(result_.commits[0], CommitCounter::kCapacity);
  // The last commit never becomes durable. Only the end of the cluster ends the wait for it.
  cluster_.view().control->state.store(static_cast<uint32_t>(ClusterState::stopped),
                                       std::memory_order_release);
  counter_->await_all();
}

}  // namespace
}  // namespace atolldb::bench
