// Independent tasks on several threads: all run once, they overlap, and the first error by number
// wins.
#include "shared/base/run_tasks.h"

#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <string>

#include "tests/support/seed.h"

namespace atolldb {
namespace {

TEST(RunTasksTest, EachTaskRunsOnceWhateverTheNumberOfThreads) {
  for (const uint32_t threads : {1u, 2u, 3u, 16u}) {
    for (const size_t count : {0u, 1u, 2u, 15u, 1000u}) {
      std::vector<std::atomic<int>> runs(count);
      on_threads(threads)(count,
                          [&](size_t i) { runs[i].fetch_add(1, std::memory_order_relaxed); });
      for (size_t i = 0; i < count; ++i) {
        EXPECT_EQ(runs[i].load(std::memory_order_relaxed), 1) << threads << " threads, task " << i;
      }
    }
  }
}

TEST(RunTasksTest, AsManyTasksOverlapAsThereAreThreads) {
  std::barrier all_are_here(4);  // the tasks end only if four of them run at the same time
  on_threads(4)(8, [&](size_t) { all_are_here.arrive_and_wait(); });
}

TEST(RunTasksTest, OneThreadIsTheCallers) {
  const auto caller = std::this_thread::get_id();
  on_threads(1)(5, [&](size_t) { EXPECT_EQ(std::this_thread::get_id(), caller); });
}

void run_backwards(size_t count, const std::function<void(size_t)>& task) {
  while (count-- > 0) task(count);
}

TEST(RunTasksTest, TheErrorIsThatOfTheSmallestNumber) {
  std::mt19937_64 random(test::seed());
  const std::vector<RunTasks> ways = {run_in_turn, run_backwards, on_threads(2), on_threads(7)};
  for (int round = 0; round < 500; ++round) {
    const size_t count = 1 + random() % 40;
    std::vector<uint8_t> fails(count);
    for (uint8_t& each : fails) each = random() % 8 == 0;
    const auto first = static_cast<size_t>(std::ranges::find(fails, 1) - fails.begin());
    for (const RunTasks& run : ways) {
      std::vector<std::atomic<int>> runs(count);
      const auto done = try_tasks(run, count, [&](size_t i) -> Result<void> {
        runs[i].fetch_add(1, std::memory_order_relaxed);
        if (fails[i] == 0) return {};
        return make_error(ExitCode::failed, std::to_string(i));
      });
      ASSERT_EQ(done.has_value(), first == count);
      const std::string error = done ? std::to_string(count) : done.error().message;
      ASSERT_EQ(error, std::to_string(first));
      for (size_t i = 0; i < first; ++i) ASSERT_EQ(runs[i].load(std::memory_order_relaxed), 1);
    }
  }
}

TEST(RunTasksTest, TasksAfterAFailureAreSkipped) {
  int runs = 0;
  const auto done = try_tasks(run_in_turn, 10, [&](size_t) -> Result<void> {
    ++runs;
    return make_error(ExitCode::failed, "no");
  });
  EXPECT_FALSE(done);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace atolldb
