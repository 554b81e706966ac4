// The checkpoint taker: when it takes checkpoints, and how it answers requests.
#include "coordinator/checkpoints/checkpoint_taker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <string>

#include "tests/coordinator/gated_takes.h"

namespace atolldb::test {
namespace {

using std::chrono::milliseconds;

/// A taker that takes no real checkpoints. Each one waits until the test lets it through.
class CheckpointTakerTest : public testing::Test, protected GatedTakes {
 protected:
  CheckpointTakerTest() {
    config_.checkpoint_interval = milliseconds(0);
    config_.checkpoint_volume = 0;
    hooks_.take = [this] {
      Result<uint32_t> taken = take();
      if (taken) newest_.store(*taken, std::memory_order_relaxed);
      return taken;
    };
    hooks_.newest = [this] { return newest_.load(std::memory_order_relaxed); };
    hooks_.has_new_commits = [this] { return has_new_commits_.load(std::memory_order_relaxed); };
    hooks_.log_bytes = [this] { return log_bytes_.load(std::memory_order_relaxed); };
    hooks_.why_log_is_long = [this]() -> std::string {
      return log_is_long_.load(std::memory_order_relaxed) ? "no room" : "";
    };
  }
  ~CheckpointTakerTest() override { let_through(1000); }

  /// Waits until the taker has checked all its reasons once more.
  static void await_check(CheckpointTaker& taker) {
    for (int check = 0; check < 2; ++check) {
      std::promise<void> done;
      taker.between_runs([&](bool) { done.set_value(); });
      done.get_future().wait();
    }
  }

  Config::Durability config_;
  CheckpointTakerHooks hooks_;
  std::atomic<uint32_t> newest_{0};
  std::atomic<bool> has_new_commits_{true};
  std::atomic<uint64_t> log_bytes_{0};
  std::atomic<bool> log_is_long_{false};
  Logger logger_ = make_silent_logger("taker");
};

TEST_F(CheckpointTakerTest, TakesOneForARequestAndAnotherForThoseThatComeMeanwhile) {
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  auto first = request(taker);
  await_begun(1);
  auto second = request(taker);
  auto third = request(taker);
  let_through(2);
  EXPECT_EQ(first.get().value(), 1u);
  EXPECT_EQ(second.get().value(), 2u);
  EXPECT_EQ(third.get().value(), 2u);
  EXPECT_EQ(begun(), 2u);
}

TEST_F(CheckpointTakerTest, AnswersWithTheNewestOneIfNothingWasCommittedSince) {
  has_new_commits_.store(false, std::memory_order_relaxed);
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  let_through(1);
  EXPECT_EQ(request(taker).get().value(), 1u) << "there was none";
  EXPECT_EQ(request(taker).get().value(), 1u);
  EXPECT_EQ(begun(), 1u);
}

TEST_F(CheckpointTakerTest, TakesNoneByItselfIfIntervalAndVolumeAreOff) {
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  log_bytes_.store(uint64_t{1} << 40, std::memory_order_relaxed);
  await_check(taker);
  EXPECT_EQ(begun(), 0u);
}

TEST_F(CheckpointTakerTest, TakesOneAfterSoMuchLogAndNotBefore) {
  config_.checkpoint_volume = 1000;
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  log_bytes_.store(999, std::memory_order_relaxed);
  await_check(taker);
  EXPECT_EQ(begun(), 0u);
  log_bytes_.store(1000, std::memory_order_relaxed);
  await_begun(1);
  log_bytes_.store(1500, std::memory_order_relaxed);  // log of transactions that run meanwhile
  let_through(1);
  await_check(taker);
  EXPECT_EQ(begun(), 1u) << "the volume begins with the begin of a checkpoint";
  log_bytes_.store(2000, std::memory_order_relaxed);
  await_begun(2);
  let_through(1);
}

TEST_F(CheckpointTakerTest, TakesOneAfterTheIntervalOnlyIfSomethingWasCommitted) {
  config_.checkpoint_interval = milliseconds(1);
  has_new_commits_.store(false, std::memory_order_relaxed);
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  await_check(taker);
  EXPECT_EQ(begun(), 0u);
  has_new_commits_.store(true, std::memory_order_relaxed);
  let_through(2);
  await_begun(3);
  has_new_commits_.store(false, std::memory_order_relaxed);
  let_through(1);
}

TEST_F(CheckpointTakerTest, TheIntervalBeginsWithTheEndOfACheckpoint) {
  config_.checkpoint_interval = milliseconds(300);
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(1);
  const auto ended = std::chrono::steady_clock::now();
  let_through(1);
  await_begun(2);
  EXPECT_GE(std::chrono::steady_clock::now() - ended, milliseconds(290));
  let_through(1000);
}

TEST_F(CheckpointTakerTest, TakesOneToMakeTheLogShorterWhateverTheConfigSays) {
  has_new_commits_.store(false, std::memory_order_relaxed);
  log_is_long_.store(true, std::memory_order_relaxed);
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  await_begun(1);
  log_is_long_.store(false, std::memory_order_relaxed);
  let_through(1);
  await_check(taker);
  EXPECT_EQ(begun(), 1u);
}

TEST_F(CheckpointTakerTest, AFailureAnswersTheRequestAndTheNextOneTriesAgain) {
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  fails_ = true;
  let_through(1);
  const auto failed = request(taker).get();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ExitCode::disk_full);
  {
    const std::lock_guard lock(mutex_);
    fails_ = false;
  }
  let_through(1);
  EXPECT_EQ(request(taker).get().value(), 2u);
}

TEST_F(CheckpointTakerTest, AnswersEveryRequestAndTaskAtItsEnd) {
  CheckpointTaker taker(config_, hooks_, logger_);
  taker.start();
  auto first = request(taker);
  await_begun(1);
  auto waiting = request(taker);
  std::promise<bool> task;
  taker.between_runs([&](bool runs) { task.set_value(runs); });
  std::jthread end([&] { taker.stop(); });
  // The taker may take the second request before it sees the end. Both answers are right.
  let_through(2);
  EXPECT_EQ(first.get().value(), 1u);
  const auto answered = waiting.get();
  EXPECT_TRUE(answered || answered.error().code == ExitCode::not_running);
  EXPECT_EQ(task.get_future().get(), answered.has_value());
  end.join();
  EXPECT_EQ(request(taker).get().error().code, ExitCode::not_running);
}

}  // namespace
}  // namespace atolldb::test
