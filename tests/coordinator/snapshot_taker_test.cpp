// The snapshot taker: when it takes snapshots, and how often it tries again.
#include "coordinator/snapshots/snapshot_taker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>

#include "tests/coordinator/gated_takes.h"

namespace atolldb::test {
namespace {

/// A taker that takes no real snapshots. Each snapshot waits until the test lets it through.
class SnapshotTakerTest : public testing::Test, protected GatedTakes {
 protected:
  SnapshotTakerTest() {
    config_.interval = std::chrono::hours(1);
    config_.log_volume = 1000;
    hooks_.has_new_commits = [this] { return has_new_commits_.load(std::memory_order_relaxed); };
    hooks_.log_bytes = [this] { return log_bytes_.load(std::memory_order_relaxed); };
    hooks_.take = [this] { return take(); };
  }
  ~SnapshotTakerTest() override { let_through(1000); }

  Config::Gleaner config_;
  SnapshotTakerHooks hooks_;
  std::atomic<bool> has_new_commits_{true};
  std::atomic<uint64_t> log_bytes_{0};
  Logger logger_ = make_silent_logger("taker");
};

TEST_F(SnapshotTakerTest, TakesOneForARequestAndAnotherForThoseThatComeMeanwhile) {
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  auto first = request(taker);
  await_begun(1);
  // These requests need another snapshot, because the durable epoch may be later by now than the
  // epoch of the first one.
  auto second = request(taker);
  auto third = request(taker);
  let_through(2);
  EXPECT_EQ(first.get().value(), 1u);
  EXPECT_EQ(second.get().value(), 2u);
  EXPECT_EQ(third.get().value(), 2u);
  EXPECT_EQ(begun(), 2u);
}

TEST_F(SnapshotTakerTest, TakesOneAfterSoMuchLog) {
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  log_bytes_.store(999, std::memory_order_relaxed);
  auto asked = request(taker);  // its answer shows that the taker has checked all its conditions
  let_through(1);
  EXPECT_EQ(asked.get().value(), 1u);
  log_bytes_.store(999 + 1000, std::memory_order_relaxed);
  await_begun(2);
  let_through(1);
}

TEST_F(SnapshotTakerTest, TakesOneWhenTheIntervalIsOverAndSomethingWasCommitted) {
  config_.interval = std::chrono::milliseconds(1);
  SnapshotTaker taker(config_, hooks_, logger_);
  let_through(3);
  taker.start();
  await_begun(4);
  has_new_commits_.store(false, std::memory_order_relaxed);
  let_through(1);
}

TEST_F(SnapshotTakerTest, AnIntervalBeginsWithTheSnapshotBeforeAndAPauseFollowsALongOne) {
  using std::chrono::milliseconds;
  config_.interval = milliseconds(1000);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(1);
  std::this_thread::sleep_for(milliseconds(800));  // the first snapshot takes that long
  const auto ended = std::chrono::steady_clock::now();
  let_through(1);
  await_begun(2);
  const auto pause = std::chrono::steady_clock::now() - ended;
  EXPECT_GE(pause, milliseconds(290));
  EXPECT_LT(pause, milliseconds(950)) << "the interval began with the end of the snapshot";
  let_through(1000);  // lets snapshots through that begin before the taker ends
}

TEST_F(SnapshotTakerTest, ASnapshotIsAwaitedByRequestsAndByTasks) {
  config_.interval = std::chrono::milliseconds(1);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(1);
  EXPECT_FALSE(taker.is_awaited());
  auto asked = request(taker);
  EXPECT_TRUE(taker.is_awaited()) << "the next snapshot begins when this one has ended";
  let_through(1);
  await_begun(2);
  EXPECT_TRUE(taker.is_awaited()) << "it is the one that was requested";
  let_through(1);
  EXPECT_EQ(asked.get().value(), 2u);
  await_begun(3);
  EXPECT_FALSE(taker.is_awaited());
  std::promise<void> ran;
  taker.between_runs([&](bool) { ran.set_value(); });
  EXPECT_TRUE(taker.is_awaited());
  let_through(1000);
  ran.get_future().get();
}

TEST_F(SnapshotTakerTest, TakesNoneByItselfWhenNothingWasCommitted) {
  config_.interval = std::chrono::milliseconds(1);
  has_new_commits_.store(false, std::memory_order_relaxed);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  log_bytes_.store(1'000'000, std::memory_order_relaxed);
  auto asked = request(taker);
  let_through(1);
  EXPECT_EQ(asked.get().value(), 1u) << "the one that was asked for is the first";
  EXPECT_EQ(begun(), 1u);
}

TEST_F(SnapshotTakerTest, ATransactionThatWaitsForTheFirstSnapshotGetsOne) {
  std::atomic<bool> is_awaited{false};
  hooks_.is_first_awaited = [&] { return is_awaited.load(std::memory_order_relaxed); };
  has_new_commits_.store(false, std::memory_order_relaxed);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  auto asked = request(taker);  // its answer shows that the taker has checked all its conditions
  let_through(1);
  EXPECT_EQ(asked.get().value(), 1u);
  is_awaited.store(true, std::memory_order_relaxed);
  auto again = request(taker);
  let_through(1);
  EXPECT_EQ(again.get().value(), 2u);
  EXPECT_EQ(begun(), 2u) << "there is nothing that it could be of";
  has_new_commits_.store(true, std::memory_order_relaxed);
  await_begun(3);
  is_awaited.store(false, std::memory_order_relaxed);
  let_through(1);
}

TEST_F(SnapshotTakerTest, TakesOneAfterTheOtherWhilePagesAreShortAndItHelps) {
  hooks_.pool_is_low = [] { return true; };
  hooks_.has_freed_pages = [] { return true; };
  SnapshotTaker taker(config_, hooks_, logger_);
  let_through(4);
  taker.start();
  await_begun(5);
  has_new_commits_.store(false, std::memory_order_relaxed);
  let_through(1);
}

TEST_F(SnapshotTakerTest, TakesOneBeforeThePagesRunShortButNotOfAnIdleCluster) {
  std::atomic<bool> is_short{false};
  hooks_.pool_is_low = [] { return false; };
  hooks_.pages_run_short = [&] { return is_short.load(std::memory_order_relaxed); };
  hooks_.has_freed_pages = [] { return true; };
  SnapshotTaker taker(config_, hooks_, logger_);
  let_through(1000);
  taker.start();
  EXPECT_EQ(request(taker).get().value(), 1u) << "none was taken while there were enough";
  is_short.store(true, std::memory_order_relaxed);
  await_begun(4);
  has_new_commits_.store(false, std::memory_order_relaxed);
  const uint32_t before = request(taker).get().value();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_LE(begun(), before + 1) << "one may have begun before";
}

TEST_F(SnapshotTakerTest, TakesOneWhenALoggerHasNoRoomForItsNextFileAndPausesUntilTheNext) {
  std::atomic<bool> lacks{false};
  hooks_.lacks_log_files = [&] { return lacks.load(std::memory_order_relaxed); };
  SnapshotTaker taker(config_, hooks_, logger_);
  let_through(1000);
  taker.start();
  auto asked = request(taker);
  EXPECT_EQ(asked.get().value(), 1u) << "none was taken while no logger lacks its file";
  const auto begin = std::chrono::steady_clock::now();
  lacks.store(true, std::memory_order_relaxed);
  await_begun(3);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(SnapshotTakerTest, TakesFewerAndFewerForLackOfPagesIfTheyAreUnproductive) {
  hooks_.pool_is_low = [] { return true; };
  hooks_.has_freed_pages = [] { return false; };
  SnapshotTaker taker(config_, hooks_, logger_);
  let_through(1000);
  const auto begin = std::chrono::steady_clock::now();
  taker.start();
  await_begun(4);
  // Between the four snapshots are waits of 200, 400 and 800 ms.
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(1400));
  EXPECT_EQ(request(taker).get().value(), 5u) << "requests do not wait for that";
}

TEST_F(SnapshotTakerTest, TakesNoneForLackOfPagesWhenNothingWasCommitted) {
  std::atomic<uint32_t> looks{0};
  has_new_commits_.store(false, std::memory_order_relaxed);
  hooks_.has_new_commits = [&] {
    looks.fetch_add(1, std::memory_order_relaxed);
    return false;
  };
  hooks_.pool_is_low = [] { return true; };
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  while (looks.load(std::memory_order_relaxed) < 3) std::this_thread::yield();
  EXPECT_EQ(begun(), 0u);
}

TEST_F(SnapshotTakerTest, TakesFurtherOnesOfAnIdleClusterWhileItHelps) {
  has_new_commits_.store(false, std::memory_order_relaxed);
  std::atomic<uint32_t> again{0};
  hooks_.take_again = [&] {
    again.fetch_add(1, std::memory_order_relaxed);
    return take();
  };
  hooks_.pool_is_low = [&] { return again.load(std::memory_order_relaxed) < 10; };
  hooks_.has_freed_pages = [] { return true; };
  let_through(1000);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(10);
  EXPECT_EQ(request(taker).get().value(), 11u) << "the pool is not low any more";
  EXPECT_EQ(again.load(std::memory_order_relaxed), 10u);
}

TEST_F(SnapshotTakerTest, StopsInAnIdleClusterWhenFourWereUnproductive) {
  has_new_commits_.store(false, std::memory_order_relaxed);
  std::atomic<uint32_t> again{0};
  hooks_.take_again = [&] {
    again.fetch_add(1, std::memory_order_relaxed);
    return take();
  };
  std::atomic<uint32_t> checks{0};
  hooks_.has_new_commits = [&] {
    checks.fetch_add(1, std::memory_order_relaxed);
    return has_new_commits_.load(std::memory_order_relaxed);
  };
  hooks_.pool_is_low = [] { return true; };
  std::atomic<bool> is_starved{false};
  hooks_.pool_is_starved = [&] { return is_starved.load(std::memory_order_relaxed); };
  hooks_.has_freed_pages = [] { return false; };
  let_through(1000);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(4);
  // Waits for more checks than pass in the pause after the fourth snapshot, which is 1.6 s.
  const uint32_t before = checks.load(std::memory_order_relaxed);
  while (checks.load(std::memory_order_relaxed) < before + 25) std::this_thread::yield();
  EXPECT_EQ(begun(), 4u);
  // With a starved pool the taker tries again: perhaps nothing is committed because there are no
  // pages.
  is_starved.store(true, std::memory_order_relaxed);
  await_begun(5);
  EXPECT_EQ(again.load(std::memory_order_relaxed), 5u);
  is_starved.store(false, std::memory_order_relaxed);
  // After a commit the taker tries again.
  has_new_commits_.store(true, std::memory_order_relaxed);
  await_begun(6);
}

TEST_F(SnapshotTakerTest, PausesForASecondAtMostWhileTransactionsWaitForPages) {
  hooks_.pool_is_low = [] { return true; };
  hooks_.pool_is_starved = [] { return true; };
  hooks_.has_freed_pages = [] { return false; };
  let_through(1000);
  SnapshotTaker taker(config_, hooks_, logger_);
  const auto begin = std::chrono::steady_clock::now();
  taker.start();
  await_begun(7);
  // The pauses double to 200, 400 and 800 ms. The next three last 1 s each, and not 1.6, 3.2 and
  // 6.4 s. The sum is 4.4 s instead of 12.6 s. The bound leaves room for a busy machine.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(SnapshotTakerTest, AFailureIsTheAnswerAndTheNextOneIsTriedAllTheSame) {
  fails_ = true;
  let_through(2);
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  const auto failed = request(taker).get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::disk_full);
  {
    const std::lock_guard lock(mutex_);
    fails_ = false;
  }
  EXPECT_EQ(request(taker).get().value(), 2u);
}

TEST_F(SnapshotTakerTest, TasksWaitForTheRunUnderWayAndTheLastOnesLearnOfTheEnd) {
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  auto taken = request(taker);
  await_begun(1);
  std::promise<bool> ran;
  std::atomic<bool> is_over{false};
  taker.between_runs([&](bool runs) {
    EXPECT_TRUE(is_over.load(std::memory_order_relaxed));
    ran.set_value(runs);
  });
  is_over.store(true, std::memory_order_relaxed);
  let_through(1);
  EXPECT_TRUE(taken.get());
  EXPECT_TRUE(ran.get_future().get());
  taker.stop();
  bool runs = true;
  taker.between_runs([&](bool it_does) { runs = it_does; });
  EXPECT_FALSE(runs);
}

/// R84. Tasks and requests come while the first snapshot is taken, which begins the next one.
TEST_F(SnapshotTakerTest, AJobThatHasBegunIsCompletedBeforeTasksAndRequests) {
  std::atomic<uint32_t> next{0};
  std::vector<std::string> order;  // used only by the taker's thread
  hooks_.take = [&] {
    auto taken = take();
    order.push_back("take");
    next.store(order.size() == 1 ? 2 : 0, std::memory_order_relaxed);
    return taken;
  };
  hooks_.has_begun_next = [&] { return next.load(std::memory_order_relaxed) != 0; };
  hooks_.take_next = [&] {
    order.push_back("take_next");
    next.fetch_sub(1, std::memory_order_relaxed);
    return Result<uint32_t>(100u);
  };
  SnapshotTaker taker(config_, hooks_, logger_);
  log_bytes_.store(1'000'000, std::memory_order_relaxed);
  taker.start();
  log_bytes_.store(2'000'000, std::memory_order_relaxed);
  await_begun(1);
  taker.between_runs([&](bool runs) { order.push_back(runs ? "task" : "no task"); });
  auto requested = request(taker);
  let_through(2);
  EXPECT_EQ(requested.get().value(), 2u) << "a snapshot that began after the request";
  taker.stop();
  EXPECT_EQ(order, (std::vector<std::string>{"take", "take_next", "take_next", "task", "take"}));
}

TEST_F(SnapshotTakerTest, RequestsThatWaitWhenItEndsAreAnswered) {
  SnapshotTaker taker(config_, hooks_, logger_);
  taker.start();
  auto first = request(taker);
  await_begun(1);
  auto second = request(taker);
  std::thread ends([&] { taker.stop(); });
  let_through(2);
  ends.join();
  EXPECT_TRUE(first.get());
  // The second snapshot was taken before the end, or the answer says that the taker has ended.
  const auto answer = second.get();
  EXPECT_TRUE(answer || answer.error().code == ExitCode::not_running);
  EXPECT_EQ(request(taker).get().error().code, ExitCode::not_running);
}

}  // namespace
}  // namespace atolldb::test
