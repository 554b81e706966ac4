#include "shared/sync/run_gate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <vector>

namespace atolldb {
namespace {

using Clock = std::chrono::steady_clock;

/// A patience that no test outlasts. So the gate adds no place, however slow the machine is.
constexpr std::chrono::milliseconds kEndless = std::chrono::hours(1);

void enter_gate(RunGate::Pass& pass) {
  if (!pass.try_enter()) pass.wait();
}

void sleep_ms(int count) { std::this_thread::sleep_for(std::chrono::milliseconds(count)); }

/// Waits until `is_true`, at most 20 s, and returns whether it is.
template <typename Condition>
bool await(Condition is_true) {
  const auto end = Clock::now() + std::chrono::seconds(20);
  while (!is_true()) {
    if (Clock::now() > end) return false;
    sleep_ms(1);
  }
  return true;
}

TEST(RunGate, WithoutAGateEveryWorkerRuns) {
  RunGate::Pass pass;
  EXPECT_TRUE(pass.try_enter());
  pass.begin_wait();
  pass.end_wait();
  pass.leave();
  pass.leave();
}

TEST(RunGate, NoMoreWorkersEnterThanThereArePlaces) {
  RunGate gate(2);
  std::array<RunGate::Pass, 3> passes;
  for (RunGate::Pass& pass : passes) pass.use(&gate);
  EXPECT_TRUE(passes[0].try_enter());
  EXPECT_TRUE(passes[1].try_enter());
  EXPECT_FALSE(passes[2].try_enter());
  passes[0].leave();
  EXPECT_FALSE(passes[2].try_enter()) << "the first worker keeps its place";
  passes[0].give_back();
  EXPECT_TRUE(passes[2].try_enter());
  EXPECT_FALSE(passes[0].try_enter());
  EXPECT_EQ(gate.running(), 2u);
  for (RunGate::Pass& pass : passes) pass.leave();
  EXPECT_EQ(gate.running(), 2u);
  for (RunGate::Pass& pass : passes) pass.use(nullptr);
  EXPECT_EQ(gate.running(), 0u);
}

TEST(RunGate, AWorkerKeepsItsPlaceWhileNoneWaits) {
  RunGate gate(1);
  RunGate::Pass pass;
  pass.use(&gate);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pass.try_enter());
    pass.leave();
    EXPECT_EQ(gate.running(), 1u);
  }
  pass.give_back();
  EXPECT_EQ(gate.running(), 0u);
  pass.give_back();  // it has none
  EXPECT_EQ(gate.running(), 0u);
}

/// Expects that each of six workers gets several turns at two places.
void expect_turns(const std::function<void(RunGate::Pass&)>& transaction) {
  constexpr uint32_t kWorkers = 6;
  RunGate gate(2, kEndless);
  std::vector<std::atomic<uint64_t>> turns(kWorkers);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (uint32_t worker = 0; worker < kWorkers; ++worker) {
    threads.emplace_back([&, worker] {
      RunGate::Pass pass;
      pass.use(&gate);
      while (!stop) {
        if (!pass.try_enter()) {
          pass.wait();
          ++turns[worker];
        }
        transaction(pass);
        pass.leave();
      }
    });
  }
  EXPECT_TRUE(await([&] {
    return std::ranges::all_of(
        turns, [](const auto& count) { return count.load(std::memory_order_relaxed) >= 10; });
  }));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(gate.running(), 0u);
  EXPECT_EQ(gate.waiting(), 0u);
}

TEST(RunGate, WorkersTakeTurns) {
  expect_turns([](RunGate::Pass&) {});
}

TEST(RunGate, WorkersThatWaitForADeviceNowAndThenTakeTurns) {
  std::atomic<uint32_t> transactions{0};
  expect_turns([&](RunGate::Pass& pass) {
    if (transactions.fetch_add(1, std::memory_order_relaxed) % 4096 != 0) return;
    const RunGate::DeviceWait wait(&pass);
    std::this_thread::sleep_for(std::chrono::microseconds(10));
  });
}

TEST(RunGate, AnotherWorkerRunsDuringAWaitForADevice) {
  RunGate gate(1, kEndless);
  RunGate::Pass first;
  first.use(&gate);
  ASSERT_TRUE(first.try_enter());
  std::atomic<bool> has_entered{false};
  std::atomic<bool> may_leave{false};
  std::thread second([&] {
    RunGate::Pass pass;
    pass.use(&gate);
    enter_gate(pass);
    has_entered = true;
    while (!may_leave) sleep_ms(1);
    pass.leave();
  });
  {
    const RunGate::DeviceWait wait(&first);
    EXPECT_TRUE(await([&] { return has_entered.load(std::memory_order_relaxed); }));
    EXPECT_EQ(gate.running(), 1u);
  }
  EXPECT_EQ(gate.running(), 2u) << "the first worker does not wait for a place";
  first.leave();
  EXPECT_EQ(gate.running(), 2u) << "the first worker keeps its place as a spare";
  may_leave = true;
  second.join();
  EXPECT_EQ(gate.running(), 1u);
}

TEST(RunGate, TwiceAsManyWorkersAsPlacesStayAfterWaitsForADevice) {
  RunGate gate(2);
  std::array<RunGate::Pass, 6> passes;
  for (RunGate::Pass& pass : passes) {
    pass.use(&gate);
    ASSERT_TRUE(pass.try_enter());
    pass.begin_wait();
  }
  EXPECT_EQ(gate.running(), 0u);
  for (RunGate::Pass& pass : passes) pass.end_wait();
  EXPECT_EQ(gate.running(), 6u);
  for (RunGate::Pass& pass : passes) pass.leave();
  EXPECT_EQ(gate.running(), 4u);
  EXPECT_FALSE(passes[0].try_enter());
  EXPECT_FALSE(passes[1].try_enter());
  EXPECT_TRUE(passes[2].try_enter());
  passes[2].leave();
}

TEST(RunGate, AWaitForADeviceWakesAnotherWorkerOnlyIfAPlaceIsFree) {
  RunGate gate(1, kEndless);
  std::array<RunGate::Pass, 2> passes;
  for (RunGate::Pass& pass : passes) {
    pass.use(&gate);
    ASSERT_TRUE(pass.try_enter());
    pass.begin_wait();
  }
  for (RunGate::Pass& pass : passes) pass.end_wait();
  ASSERT_EQ(gate.running(), 2u);
  std::atomic<bool> has_entered{false};
  std::thread third([&] {
    RunGate::Pass pass;
    pass.use(&gate);
    enter_gate(pass);
    has_entered = true;
    pass.leave();
  });
  EXPECT_TRUE(await([&] { return gate.waiting() == 1; }));
  passes[0].begin_wait();
  EXPECT_EQ(gate.running(), 1u);
  EXPECT_EQ(gate.waiting(), 1u);
  EXPECT_FALSE(has_entered) << "the other worker runs";
  passes[1].begin_wait();
  EXPECT_TRUE(await([&] { return has_entered.load(std::memory_order_relaxed); }));
  third.join();
  EXPECT_EQ(gate.capacity(), 1u);
  for (RunGate::Pass& pass : passes) pass.end_wait();
  for (RunGate::Pass& pass : passes) pass.leave();
}

/// Lets both workers wait for a device at the same time, so that one of them is a spare.
void make_spare(RunGate& gate, RunGate::Pass& first, RunGate::Pass& second) {
  for (RunGate::Pass* pass : {&first, &second}) {
    pass->use(&gate);
    ASSERT_TRUE(pass->try_enter());
    pass->begin_wait();
  }
  first.end_wait();
  second.end_wait();
  ASSERT_EQ(gate.running(), 2u);
}

/// Runs transactions until the worker has lost its place.
void run_until_out(RunGate::Pass& pass) {
  pass.leave();
  EXPECT_TRUE(await([&] {
    for (int i = 0; i < 100 && pass.try_enter(); ++i) pass.leave();
    if (!pass.try_enter()) return true;
    pass.leave();
    return false;
  }));
}

TEST(RunGate, ASpareWorkerGivesItsPlaceUpWhileNoneWaits) {
  RunGate gate(1, kEndless);
  RunGate::Pass spare;
  RunGate::Pass other;
  make_spare(gate, spare, other);
  run_until_out(spare);
  EXPECT_EQ(gate.running(), 1u);
  other.leave();
}

TEST(RunGate, ASpareWorkerGivesItsPlaceUpWhileAnotherWaits) {
  RunGate gate(1, kEndless);
  RunGate::Pass spare;
  RunGate::Pass other;
  make_spare(gate, spare, other);
  std::thread third([&] {
    RunGate::Pass pass;
    pass.use(&gate);
    enter_gate(pass);
    pass.leave();
  });
  EXPECT_TRUE(await([&] { return gate.waiting() == 1; }));
  run_until_out(spare);
  other.leave();
  third.join();
  EXPECT_EQ(gate.capacity(), 1u);
}

TEST(RunGate, AWorkerThatSleepsBetweenTransactionsLosesItsPlace) {
  RunGate gate(1);
  RunGate::Pass sleeper;
  sleeper.use(&gate);
  ASSERT_TRUE(sleeper.try_enter());
  std::atomic<bool> has_entered{false};
  std::thread second([&] {
    RunGate::Pass pass;
    pass.use(&gate);
    enter_gate(pass);
    has_entered = true;
    pass.leave();
  });
  EXPECT_TRUE(await([&] { return gate.waiting() == 1 || has_entered; }));
  sleeper.leave();
  EXPECT_TRUE(await([&] { return has_entered.load(std::memory_order_relaxed); }));
  second.join();
  EXPECT_EQ(gate.running(), 0u);
  EXPECT_TRUE(sleeper.try_enter()) << "the other worker has given the place back";
  sleeper.leave();
}

TEST(RunGate, ALongTransactionDelaysOthersOnlyForTheGatesPatience) {
  RunGate gate(1);
  RunGate::Pass slow;
  slow.use(&gate);
  ASSERT_TRUE(slow.try_enter());
  const auto begin = Clock::now();
  std::vector<std::thread> threads;
  std::atomic<uint32_t> entered{0};
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      RunGate::Pass pass;
      pass.use(&gate);
      enter_gate(pass);
      ++entered;
      pass.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(entered.load(std::memory_order_relaxed), 3u);
  EXPECT_GE(Clock::now() - begin, RunGate::kPatience);
  EXPECT_EQ(gate.running(), 1u);
  EXPECT_EQ(gate.capacity(), 2u) << "others use the new place while the long transaction runs";
  slow.leave();
  EXPECT_EQ(gate.capacity(), 1u);
}

TEST(RunGateDeathTest, AWorkerEntersOnce) {
  RunGate gate(2);
  RunGate::Pass pass;
  pass.use(&gate);
  ASSERT_TRUE(pass.try_enter());
  EXPECT_DEATH(static_cast<void>(pass.try_enter()), "Place::none");
  pass.leave();
}

}  // namespace
}  // namespace atolldb
