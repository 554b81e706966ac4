// Requests that wait for the end of a task: deadlines, progress, errors.
#include "soc/checkpoint/awaited_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>

#include "tests/soc/checkpoint/service_nodes.h"

namespace atolldb::test {
namespace {

using Clock = AwaitedTask::Clock;

TEST(AwaitedTask, AnswersAtTheDeadlineAndAgainAtTheEnd) {
  std::promise<void> may_end;
  std::atomic<int> progress{1};
  AwaitedTask task(
      "test",
      [&]() -> Result<Json> {
        may_end.get_future().wait();
        return Json{{"result", 7}};
      },
      [&] { return Json{{"progress", progress.load(std::memory_order_relaxed)}}; });
  ControlAnswer early;
  task.wait(Clock::now(), early.reply());
  const auto going = early.get();
  ASSERT_TRUE(going) << going.error().message;
  EXPECT_EQ(*going, Json({{"done", false}, {"progress", 1}}));
  EXPECT_FALSE(task.has_ended());

  ControlAnswer last;
  task.wait(Clock::time_point::max(), last.reply());
  progress.store(2, std::memory_order_relaxed);
  may_end.set_value();
  const auto ended = last.get();
  ASSERT_TRUE(ended) << ended.error().message;
  EXPECT_EQ(*ended, Json({{"done", true}, {"progress", 2}, {"result", 7}}));
  EXPECT_TRUE(task.has_succeeded());

  ControlAnswer late;
  task.wait(Clock::now(), late.reply());
  EXPECT_EQ(*late.get(), *ended);
}

TEST(AwaitedTask, AnswersAllRequestsWithTheErrorOfTheWork) {
  std::promise<void> may_end;
  AwaitedTask task(
      "test",
      [&]() -> Result<Json> {
        may_end.get_future().wait();
        return make_error(ExitCode::disk_full, "the disk is full");
      },
      [] { return Json::object(); });
  ControlAnswer first;
  ControlAnswer second;
  task.wait(Clock::time_point::max(), first.reply());
  task.wait(Clock::now() + std::chrono::hours(1), second.reply());
  may_end.set_value();
  for (ControlAnswer* answer : {&first, &second}) {
    const auto failed = answer->get();
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, ExitCode::disk_full);
  }
  EXPECT_TRUE(task.has_ended());
  EXPECT_FALSE(task.has_succeeded());
}

TEST(AwaitedTask, ItsEndIsWaitedForByTheDestructor) {
  std::atomic<bool> has_ended{false};
  {
    AwaitedTask task(
        "test",
        [&]() -> Result<Json> {
          std::this_thread::yield();
          has_ended.store(true, std::memory_order_release);
          return Json::object();
        },
        [] { return Json::object(); });
  }
  EXPECT_TRUE(has_ended.load(std::memory_order_acquire));
}

}  // namespace
}  // namespace atolldb::test
