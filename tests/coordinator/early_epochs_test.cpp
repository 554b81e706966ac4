// Early ends of epochs: when a worker asks for one, and when the clock grants it.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "coordinator/epoch/epoch_clock.h"
#include "shared/memory/epoch_end.h"
#include "tests/support/eventually.h"

namespace atolldb {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using test::eventually;

constexpr uint64_t kFirstEpoch = 10;

/// Epoch words, and two nodes with two workers each, in ordinary memory.
class EarlyEpochsTest : public testing::Test {
 protected:
  EarlyEpochsTest() {
    std::printf("seed: none, nothing here is random\n");
    NodeSharedLayout layout;
    layout.worker_count = 2;
    layout.node_count = 2;
    for (uint32_t node = 0; node < 2; ++node) {
      memory_.emplace_back(static_cast<std::byte*>(::operator new(layout.bytes(), kAlign)));
      std::memset(memory_.back().get(), 0, layout.bytes());
      nodes_.push_back(reinterpret_cast<NodeShared*>(memory_.back().get()));
      layout.format(*nodes_.back());
      view_.shared[node] = nodes_.back();
    }
    view_.control = control_.get();
    view_.node_count = 2;
    start_epochs(epochs(), kFirstEpoch);
  }
  EpochBlock& epochs() { return control_->epochs; }
  uint64_t current() { return epochs().current.load(std::memory_order_acquire); }
  uint64_t requested() { return epochs().end_requested.load(std::memory_order_acquire); }
  uint32_t signal() { return epochs().end_signal.load(std::memory_order_acquire); }
  uint64_t early_ends() { return epochs().early_ends.load(std::memory_order_relaxed); }
  void make_idle(uint32_t node, uint32_t worker) {
    idle_.push_back(std::make_unique<IdleWorker>(nodes_[node]->slot(worker)));
    request_epoch_end(view_);
  }
  void make_all_idle() {
    for (uint32_t node = 0; node < 2; ++node) {
      for (uint32_t worker = 0; worker < 2; ++worker) make_idle(node, worker);
    }
  }
  /// A client waits for the current epoch, and all workers are idle.
  void request() {
    await_epoch(epochs(), current());
    request_epoch_end(view_);
  }
  void commit_in(uint64_t epoch) { nodes_[0]->dirty_epoch.store(epoch, std::memory_order_seq_cst); }
  std::unique_ptr<EpochClock> start_clock(EpochIntervals intervals, bool is_logged) {
    auto clock = std::make_unique<EpochClock>(epochs(), nodes_, intervals, is_logged,
                                              make_silent_logger("clock"));
    clock->start();
    return clock;
  }

  static constexpr std::align_val_t kAlign{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlign); }
  };
  std::unique_ptr<ControlSegment> control_ = std::make_unique<ControlSegment>();
  std::vector<std::unique_ptr<std::byte, Free>> memory_;
  std::vector<NodeShared*> nodes_;
  ClusterView view_;
  std::vector<std::unique_ptr<IdleWorker>> idle_;
};

TEST_F(EarlyEpochsTest, IdleWorkersAskForNothingWhileNoClientWaits) {
  make_all_idle();
  EXPECT_EQ(requested(), 0u);
  await_epoch(epochs(), kFirstEpoch - 1);
  request_epoch_end(view_);
  EXPECT_EQ(requested(), 0u) << "that epoch is over, and durable";
  EXPECT_EQ(signal(), 0u) << "the clock sleeps on";
}

TEST_F(EarlyEpochsTest, TheLastWorkerThatBecomesIdleAsksOncePerEpoch) {
  await_epoch(epochs(), kFirstEpoch);
  make_idle(0, 0);
  make_idle(1, 1);
  make_idle(0, 1);
  EXPECT_EQ(requested(), 0u) << "a worker of the other node has a task";
  make_idle(1, 0);
  EXPECT_EQ(requested(), kFirstEpoch);
  EXPECT_EQ(signal(), 1u);
  idle_.pop_back();
  make_idle(1, 0);
  EXPECT_EQ(signal(), 1u) << "it was asked already";
  epochs().current.store(kFirstEpoch + 1, std::memory_order_seq_cst);
  idle_.pop_back();
  await_epoch(epochs(), kFirstEpoch + 1);
  request_epoch_end(view_);
  EXPECT_EQ(requested(), kFirstEpoch) << "the worker has a task again";
  make_idle(1, 0);
  EXPECT_EQ(requested(), kFirstEpoch + 1);
}

TEST_F(EarlyEpochsTest, AnEpochIsAwaitedByTheLatestOfItsClients) {
  await_epoch(epochs(), kFirstEpoch + 3);
  await_epoch(epochs(), kFirstEpoch);
  EXPECT_EQ(epochs().awaited.load(std::memory_order_relaxed), kFirstEpoch + 3);
}

TEST_F(EarlyEpochsTest, AnEpochWhoseMarkerIsUnderWayNeedsNoEarlyEndButALateCommitDoes) {
  make_all_idle();
  await_epoch(epochs(), kFirstEpoch);
  commit_in(kFirstEpoch);
  tick_epochs(epochs(), nodes_, true);
  request_epoch_end(view_);
  EXPECT_EQ(requested(), 0u) << "the loggers write the marker already";
  raise_durable(epochs(), kFirstEpoch);
  // The clock ticks while a commit of the epoch before has not made it dirty yet. Only another tick
  // can ask for the marker.
  const uint64_t late = current();
  await_epoch(epochs(), late);
  tick_epochs(epochs(), nodes_, true);
  commit_in(late);
  request_epoch_end(view_);
  EXPECT_EQ(requested(), late + 1);
}

TEST_F(EarlyEpochsTest, ARequestIsForOneEpochAndWaitsForTheMarkerUnderWay) {
  EXPECT_FALSE(is_end_requested(epochs()));
  make_all_idle();
  request();
  EXPECT_TRUE(is_end_requested(epochs()));
  EXPECT_FALSE(waits_for_loggers(epochs()));
  commit_in(kFirstEpoch);
  tick_epochs(epochs(), nodes_, true);
  EXPECT_FALSE(is_end_requested(epochs())) << "the epoch has ended";
  EXPECT_TRUE(waits_for_loggers(epochs()));
  raise_durable(epochs(), kFirstEpoch);
  EXPECT_FALSE(waits_for_loggers(epochs()));
}

TEST_F(EarlyEpochsTest, TheSecondHalfOfAllEpochsIsForRegularEnds) {
  make_all_idle();
  for (const uint64_t epoch : {kLastEarlyEpoch, kLastEarlyEpoch + 1}) {
    start_epochs(epochs(), epoch);
    request();
    EXPECT_EQ(requested(), epoch);
    EXPECT_EQ(is_end_requested(epochs()), epoch == kLastEarlyEpoch);
  }
}

TEST_F(EarlyEpochsTest, TheClockEndsRequestedEpochsNoSoonerThanTheShortestTime) {
  constexpr uint64_t kRounds = 20;
  constexpr milliseconds kShortest{2};
  make_all_idle();
  const auto clock = start_clock({hours(1), kShortest}, false);
  for (uint64_t epoch = kFirstEpoch; epoch < kFirstEpoch + kRounds; ++epoch) {
    ASSERT_EQ(current(), epoch) << "no epoch ends by itself";
    request();
    ASSERT_TRUE(eventually([&] { return current() > epoch; }));
  }
  EXPECT_EQ(early_ends(), kRounds);
  // The clock raises the durable epoch just after the current one.
  const auto durable = [&] { return epochs().durable.load(std::memory_order_acquire); };
  EXPECT_TRUE(eventually([&] { return durable() == current() - 1; })) << "without a log";
  for (uint64_t epoch = kFirstEpoch + 1; epoch < kFirstEpoch + kRounds; ++epoch) {
    const uint64_t length_ns = epoch_end_ns(epochs(), epoch) - epoch_end_ns(epochs(), epoch - 1);
    EXPECT_GE(length_ns, static_cast<uint64_t>(std::chrono::nanoseconds(kShortest).count()));
  }
}

TEST_F(EarlyEpochsTest, TheClockWaitsForTheLoggersBeforeTheNextEarlyEnd) {
  make_all_idle();
  const auto clock = start_clock({hours(1), milliseconds(1)}, true);
  commit_in(kFirstEpoch);
  request();
  ASSERT_TRUE(eventually([&] { return current() == kFirstEpoch + 1; }));
  ASSERT_TRUE(eventually(
      [&] { return epochs().marker_wanted.load(std::memory_order_acquire) == kFirstEpoch; }));
  commit_in(kFirstEpoch + 1);
  request();
  const uint64_t before_ns = monotonic_time_ns();
  raise_durable(epochs(), kFirstEpoch);
  ASSERT_TRUE(eventually([&] { return current() == kFirstEpoch + 2; }));
  EXPECT_GE(epoch_end_ns(epochs(), kFirstEpoch + 1), before_ns);
}

TEST_F(EarlyEpochsTest, NoEpochEndsEarlyIfTheShortestTimeIsNotLessThanTheRegularOne) {
  make_all_idle();
  const auto clock = start_clock({milliseconds(1), milliseconds(1)}, false);
  ASSERT_TRUE(eventually([&] {
    request();
    return current() >= kFirstEpoch + 50;
  }));
  clock->stop();
  EXPECT_EQ(early_ends(), 0u);
}

}  // namespace
}  // namespace atolldb
