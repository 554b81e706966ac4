// Answers are held until their epoch is durable. If it never becomes durable, the client gets an
// error.
#include "soc/session/durable_answers.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>

#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

class DurableAnswersTest : public ::testing::Test {
 protected:
  DurableAnswersTest() : control_(std::make_unique<ControlSegment>()), answers_(*control_) {
    control_->state.store(static_cast<uint32_t>(ClusterState::running), std::memory_order_release);
    control_->epochs.durable.store(10, std::memory_order_release);
    answers_.start();
  }
  std::future<bool> add(uint64_t epoch) {
    auto told = std::make_shared<std::promise<bool>>();
    answers_.add(epoch, [told](bool is_durable) { told->set_value(is_durable); });
    return told->get_future();
  }
  void raise(uint64_t epoch) {
    control_->epochs.durable.store(epoch, std::memory_order_release);
    control_->epochs.durable_signal.fetch_add(1, std::memory_order_release);
    wake(control_->epochs.durable_signal, kWakeAll);
  }
  static bool is_told(std::future<bool>& future) {
    return future.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
  }

  std::unique_ptr<ControlSegment> control_;
  DurableAnswers answers_;
};

TEST_F(DurableAnswersTest, WhatIsDurableIsToldAtOnceAndTheRestInTurn) {
  auto old = add(10);
  auto nothing = add(0);
  EXPECT_TRUE(is_told(old));
  EXPECT_TRUE(old.get());
  EXPECT_TRUE(nothing.get());
  auto later = add(12);
  auto next = add(11);
  EXPECT_EQ(answers_.waiting(), 2u);
  raise(11);
  EXPECT_TRUE(next.get());
  EXPECT_FALSE(is_told(later));
  EXPECT_EQ(answers_.waiting(), 1u);
  raise(12);
  EXPECT_TRUE(later.get());
}

TEST_F(DurableAnswersTest, AnAnswerKnowsWhetherItRunsOnTheThreadOfTheQueue) {
  std::promise<bool> at_once;
  answers_.add(10, [&](bool) { at_once.set_value(answers_.is_own_thread()); });
  EXPECT_FALSE(at_once.get_future().get());
  std::promise<bool> later;
  answers_.add(11, [&](bool) { later.set_value(answers_.is_own_thread()); });
  raise(11);
  EXPECT_TRUE(later.get_future().get());
}

TEST_F(DurableAnswersTest, AFailedClusterMakesWhatWaitsUnknown) {
  auto waiting = add(11);
  control_->state.store(static_cast<uint32_t>(ClusterState::stopped), std::memory_order_release);
  EXPECT_FALSE(waiting.get());
}

TEST_F(DurableAnswersTest, TheEndGivesTheClockItsTimeAndThenGivesUp) {
  auto soon = add(11);
  auto never = add(99);
  raise(11);
  EXPECT_TRUE(soon.get());
  answers_.stop(std::chrono::milliseconds(1));
  EXPECT_FALSE(never.get());
  EXPECT_FALSE(add(100).get()) << "after the end";
  EXPECT_TRUE(add(11).get());
}

}  // namespace
}  // namespace atolldb
