// The epoch clock: ticks, durable epochs, reclamation and wanted markers.
#include "coordinator/epoch/epoch_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "shared/memory/control_layout.h"

namespace atolldb {
namespace {

/// Epoch words and one node with two workers, in ordinary memory.
class EpochClockTest : public testing::Test {
 protected:
  EpochClockTest() {
    layout_.worker_count = 2;
    memory_.reset(static_cast<std::byte*>(::operator new(layout_.bytes(), kAlign)));
    std::memset(memory_.get(), 0, layout_.bytes());
    layout_.format(node());
    start_epochs(epochs_, 10);
  }
  NodeShared& node() { return *reinterpret_cast<NodeShared*>(memory_.get()); }
  bool tick() { return tick_epochs(epochs_, {&node()}, false); }
  void begin(uint32_t worker, uint64_t epoch) {
    node().slot(worker).begin_epoch.store(epoch, std::memory_order_relaxed);
  }
  void in_commit(uint32_t worker, uint64_t epoch) {
    node().slot(worker).in_commit_epoch.store(epoch, std::memory_order_relaxed);
  }
  uint64_t current() const { return epochs_.current.load(std::memory_order_relaxed); }
  bool tick_logged() { return tick_epochs(epochs_, {&node()}, true); }
  uint64_t settled() const { return epochs_.settled.load(std::memory_order_relaxed); }
  uint64_t durable() const { return epochs_.durable.load(std::memory_order_relaxed); }
  uint64_t oldest() const { return epochs_.oldest_begin.load(std::memory_order_relaxed); }

  static constexpr std::align_val_t kAlign{4096};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, kAlign); }
  };
  NodeSharedLayout layout_;
  std::unique_ptr<std::byte, Free> memory_;
  EpochBlock epochs_{};
};

TEST_F(EpochClockTest, WithoutTransactionsEverythingFollowsTheClock) {
  EXPECT_EQ(current(), 10u);
  EXPECT_EQ(durable(), 9u);
  EXPECT_TRUE(tick());
  EXPECT_EQ(current(), 11u);
  EXPECT_EQ(durable(), 10u);
  EXPECT_EQ(oldest(), 11u);
}

TEST_F(EpochClockTest, TheEndsOfTheLatestEpochsAreKept) {
  const uint64_t begin_ns = monotonic_time_ns();
  EXPECT_TRUE(tick());
  const uint64_t first_ns = epoch_end_ns(epochs_, 10);
  EXPECT_GE(first_ns, begin_ns);
  while (current() < 10 + kEpochEnds - 1) EXPECT_TRUE(tick());
  EXPECT_EQ(epoch_end_ns(epochs_, 10), first_ns);
  EXPECT_TRUE(tick());
  EXPECT_EQ(epoch_end_ns(epochs_, 10), epoch_end_ns(epochs_, 11)) << "the oldest that is kept";
  EXPECT_GE(epoch_end_ns(epochs_, current() - 1), epoch_end_ns(epochs_, 11));
  EXPECT_LE(epoch_end_ns(epochs_, current() - 1), monotonic_time_ns());
}

TEST_F(EpochClockTest, ALongTransactionHoldsReclamationButNotTheEpochs) {
  begin(1, 10);
  for (int i = 0; i < 200; ++i) EXPECT_TRUE(tick());
  EXPECT_EQ(current(), 210u);
  EXPECT_EQ(durable(), 209u);
  EXPECT_EQ(oldest(), 10u);
  begin(1, kIdleEpoch);
  begin(0, 205);
  tick();
  EXPECT_EQ(oldest(), 205u);
}

TEST_F(EpochClockTest, ACommitUnderWayHoldsTheDurableEpochAndAtLastTheClock) {
  tick();
  in_commit(0, 11);
  for (uint64_t i = 0; i < 2 * kMaxOpenEpochs; ++i) tick();
  EXPECT_EQ(durable(), 10u);
  EXPECT_EQ(current(), 10 + kMaxOpenEpochs + 1);
  EXPECT_FALSE(tick());
  in_commit(0, 0);
  tick();
  EXPECT_TRUE(tick());
  EXPECT_EQ(durable(), current() - 1);
}

TEST_F(EpochClockTest, AMarkerIsWantedForTheLatestDirtyEpochThatIsOver) {
  const auto logged_tick = [&] { EXPECT_TRUE(tick_epochs(epochs_, {&node()}, true)); };
  const auto wanted = [&] { return epochs_.marker_wanted.load(std::memory_order_relaxed); };
  const auto signal = [&] { return epochs_.marker_signal.load(std::memory_order_relaxed); };
  const auto make_dirty = [&](uint64_t epoch) {
    node().dirty_epoch.store(epoch, std::memory_order_relaxed);
  };
  const uint32_t idle = signal();
  for (int i = 0; i < 5; ++i) logged_tick();
  EXPECT_EQ(wanted(), 9u) << "an idle cluster writes nothing";
  EXPECT_EQ(signal(), idle);

  make_dirty(current());
  const uint64_t dirty = current();
  logged_tick();
  EXPECT_EQ(wanted(), dirty);
  EXPECT_NE(signal(), idle) << "the loggers sleep on";
  const uint32_t busy = signal();
  for (int i = 0; i < 5; ++i) logged_tick();
  EXPECT_EQ(wanted(), dirty) << "nothing was committed since";
  EXPECT_EQ(signal(), busy);

  // A worker commits in the new epoch before the clock checks. The new epoch is not over, so the
  // clock does not want its marker yet.
  make_dirty(current() + 1);
  logged_tick();
  EXPECT_EQ(wanted(), current() - 1);
  logged_tick();
  EXPECT_EQ(wanted(), current() - 1);
  EXPECT_EQ(durable(), 9u) << "with a log the clock makes nothing durable";
}

TEST_F(EpochClockTest, AfterIdlenessOneMarkerMoreIsWantedOnceTheLastCommitIsDurable) {
  const auto wanted = [&] { return epochs_.marker_wanted.load(std::memory_order_relaxed); };
  const auto make_dirty = [&](uint64_t epoch) {
    node().dirty_epoch.store(epoch, std::memory_order_relaxed);
  };
  for (uint64_t i = 0; i < 3 * kEpochsUntilClosing; ++i) tick_logged();
  EXPECT_EQ(wanted(), 9u) << "nothing was committed: there is nothing to close";
  const uint64_t commit = current();
  make_dirty(commit);
  for (uint64_t i = 0; i < 3 * kEpochsUntilClosing; ++i) tick_logged();
  EXPECT_EQ(wanted(), commit) << "no block could name the commit's epoch as durable";
  raise_durable(epochs_, commit);
  tick_logged();
  const uint64_t closing = wanted();
  EXPECT_EQ(closing, current() - 1);
  const uint32_t signal = epochs_.marker_signal.load(std::memory_order_relaxed);
  raise_durable(epochs_, closing);
  for (uint64_t i = 0; i < 3 * kEpochsUntilClosing; ++i) tick_logged();
  EXPECT_EQ(wanted(), closing) << "one is enough: an idle cluster is silent";
  EXPECT_EQ(epochs_.marker_signal.load(std::memory_order_relaxed), signal);
  // The next commit, which takes long, gets its own closing marker.
  in_commit(0, current());
  const uint64_t second = current();
  for (uint64_t i = 0; i < 2 * kEpochsUntilClosing; ++i) tick_logged();
  EXPECT_EQ(wanted(), closing);
  make_dirty(second);
  in_commit(0, 0);
  for (uint64_t i = 0; i < kEpochsUntilClosing; ++i) tick_logged();
  EXPECT_EQ(wanted(), second);
  raise_durable(epochs_, second);
  tick_logged();
  EXPECT_GT(wanted(), second);
}

TEST_F(EpochClockTest, TheClosingMarkerWaitsForItsNumberOfEpochs) {
  const auto wanted = [&] { return epochs_.marker_wanted.load(std::memory_order_relaxed); };
  const uint64_t commit = current();
  node().dirty_epoch.store(commit, std::memory_order_relaxed);
  tick_logged();
  raise_durable(epochs_, commit);
  while (current() - 1 < commit + kEpochsUntilClosing) {
    EXPECT_EQ(wanted(), commit);
    tick_logged();
  }
  EXPECT_EQ(wanted(), commit + kEpochsUntilClosing);
}

TEST_F(EpochClockTest, ARequestedEpochIsClosedWithoutCommitsOnceTheLastCommitIsDurable) {
  const auto wanted = [&] { return epochs_.marker_wanted.load(std::memory_order_relaxed); };
  const auto tick_up_to = [&](uint64_t epoch) {
    tick_epochs(epochs_, {&node()}, true, kEpochsUntilClosing, epoch);
  };
  const uint64_t requested = current() + 1;
  tick_up_to(requested);
  EXPECT_EQ(wanted(), 9u) << "the epoch is not over";
  in_commit(0, requested);
  for (int i = 0; i < 3; ++i) tick_up_to(requested);
  EXPECT_EQ(wanted(), 9u) << "a commit is under way in the epoch";
  in_commit(0, 0);
  tick_up_to(requested);
  const uint64_t first = wanted();
  EXPECT_GE(first, requested);
  EXPECT_LT(first, current());
  raise_durable(epochs_, first);
  for (int i = 0; i < 3; ++i) tick_up_to(requested);
  EXPECT_EQ(wanted(), first) << "the epoch is durable";
  const uint64_t commit = current();
  node().dirty_epoch.store(commit, std::memory_order_relaxed);
  for (int i = 0; i < 3; ++i) tick_up_to(commit + 1);
  EXPECT_EQ(wanted(), commit) << "the marker has to name the last commit as durable";
  raise_durable(epochs_, commit);
  tick_up_to(commit + 1);
  EXPECT_GT(wanted(), commit);
}

TEST_F(EpochClockTest, NoWordEverRunsBackward) {
  for (int i = 0; i < 5; ++i) tick();
  const uint64_t was_durable = durable();
  const uint64_t was_oldest = oldest();
  // A thread publishes an epoch late. The epoch is older than the oldest epoch that the clock has
  // computed.
  begin(0, 3);
  in_commit(0, 3);
  tick();
  EXPECT_EQ(durable(), was_durable);
  EXPECT_EQ(oldest(), was_oldest);
}

TEST_F(EpochClockTest, TheClockStopsAtTheLastEpoch) {
  start_epochs(epochs_, kMaxEpoch - 1);
  EXPECT_TRUE(tick());
  EXPECT_EQ(current(), kMaxEpoch);
  EXPECT_FALSE(tick());
  EXPECT_EQ(current(), kMaxEpoch);
}

TEST_F(EpochClockTest, WithALogOnlyLoggersMakeDurableAndOnlyWhatIsDirtyIsWanted) {
  const uint64_t start = current();
  tick_logged();
  EXPECT_EQ(durable(), start - 1);
  EXPECT_EQ(epochs_.marker_wanted.load(std::memory_order_relaxed), start - 1)
      << "an idle cluster writes nothing (R27)";
  node().dirty_epoch.store(start + 1, std::memory_order_relaxed);
  tick_logged();
  EXPECT_EQ(epochs_.marker_wanted.load(std::memory_order_relaxed), start + 1);
  EXPECT_EQ(durable(), start - 1);
}

TEST_F(EpochClockTest, TheSettledEpochAdvancesWhileNothingCommitsButNeverPastWhatMayBeLost) {
  for (int i = 0; i < 5; ++i) tick_logged();
  EXPECT_EQ(settled(), current() - 1) << "without commits there is nothing to lose";
  const uint64_t dirty = current();
  node().dirty_epoch.store(dirty, std::memory_order_relaxed);
  const uint64_t before = settled();
  tick_logged();
  EXPECT_EQ(settled(), before) << "a commit of an earlier epoch is not durable";
  epochs_.durable.store(dirty, std::memory_order_relaxed);
  tick_logged();
  EXPECT_EQ(settled(), current() - 1);
}

TEST_F(EpochClockTest, TheSettledEpochStaysWhereAReplayNeedsItUntilItIsReleased) {
  constexpr uint64_t kHeld = 4;
  constexpr EpochIntervals kIntervals{std::chrono::milliseconds(1), std::chrono::milliseconds(1)};
  EpochClock clock(epochs_, {&node()}, kIntervals, true, make_silent_logger("epochs"));
  clock.start();
  clock.hold_settled(kHeld);
  const uint64_t ticks = clock.tick_count();
  while (clock.tick_count() < ticks + 5) std::this_thread::yield();
  EXPECT_EQ(settled(), kHeld);
  clock.release_settled(9);
  EXPECT_GE(settled(), 9u) << "the last epoch before this incarnation";
  const uint64_t released = settled();
  while (settled() == released) std::this_thread::yield();
  clock.stop();
}

TEST_F(EpochClockTest, AnIdleClusterHasNoLagAndOneWhoseLoggersHangHasMoreAndMore) {
  for (int i = 0; i < 100; ++i) {
    tick_logged();
    EXPECT_EQ(durability_lag_epochs(epochs_), 0u) << "nothing was ever committed";
  }
  const uint64_t dirty = current();
  node().dirty_epoch.store(dirty, std::memory_order_relaxed);
  for (int i = 0; i < 100; ++i) tick_logged();
  EXPECT_GE(durability_lag_epochs(epochs_), 98u) << "a commit is not durable";
  EXPECT_LT(latest_settled_epoch(epochs_), dirty);
  epochs_.durable.store(dirty, std::memory_order_relaxed);
  for (int i = 0; i < 100; ++i) {
    tick_logged();
    EXPECT_EQ(durability_lag_epochs(epochs_), 0u) << "all that was committed is durable";
  }
  EXPECT_EQ(latest_settled_epoch(epochs_), current() - 1);
  EXPECT_EQ(durable(), dirty) << "what answers rely on is what loggers have synced (R19)";
}

}  // namespace
}  // namespace atolldb
