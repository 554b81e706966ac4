#include "coordinator/task_thread.h"

#include <gtest/gtest.h>

#include <vector>

namespace atolldb::test {
namespace {

TEST(TaskThreadTest, TasksRunInTheirOrderAndAllOfThemBeforeTheThreadEnds) {
  constexpr int kTasks = 100;
  std::vector<int> done;
  TaskThread thread("tasks");
  for (int task = 0; task < kTasks; ++task) {
    if (task == kTasks / 2) thread.start();
    EXPECT_TRUE(thread.give([&done, task] { done.push_back(task); }));
  }
  thread.stop();
  ASSERT_EQ(done.size(), static_cast<size_t>(kTasks));
  for (int task = 0; task < kTasks; ++task) EXPECT_EQ(done[static_cast<size_t>(task)], task);
}

TEST(TaskThreadTest, ATaskThatIsGivenAfterTheEndIsRefused) {
  bool has_run = false;
  TaskThread thread("tasks");
  thread.start();
  thread.stop();
  EXPECT_FALSE(thread.give([&has_run] { has_run = true; }));
  EXPECT_FALSE(has_run);
}

}  // namespace
}  // namespace atolldb::test
