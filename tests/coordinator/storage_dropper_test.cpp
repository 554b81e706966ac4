// Drops of storages that are slow, that fail for a while, or that the end of the cluster
// interrupts.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <utility>

#include "tests/coordinator/drop_rules.h"

namespace atolldb::test {
namespace {

TEST(StorageDropperTest, ADropGoesThroughItsPhasesInTheirOrder) {
  EXPECT_EQ(a_drop_goes_through_its_phases_in_their_order(), "");
}

TEST(StorageDropperTest, AClientIsToldInTimeAndTheDropGoesOn) {
  DropStage stage(std::chrono::milliseconds(1));
  const Result<uint64_t> told = stage.drop(1).get();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ExitCode::failed);
  EXPECT_TRUE(told.error().message.contains("waits for transactions that began before it"))
      << told.error().message;
  EXPECT_EQ(stage.dropper().progress(1), "waits for transactions that began before it");
  stage.set_begun();
  stage.await("durable");
  EXPECT_EQ(stage.dropper().progress(1), "waits until what committed before it is durable");
  stage.set_durable();
  stage.await("free");
  EXPECT_FALSE(stage.dropper().is_unlogged("storage"));
}

TEST(StorageDropperTest, PagesThatCannotBeReleasedAreTriedAgainAndOtherDropsGoOn) {
  DropStage stage;
  stage.set_begun();
  stage.set_durable();
  stage.set_releasable(false);
  auto first = stage.drop(1);
  stage.await("release", 2);
  const auto progress = stage.dropper().progress(1);
  ASSERT_TRUE(progress);
  EXPECT_TRUE(progress->contains("node 0: no answer")) << *progress;
  EXPECT_FALSE(stage.dropper().is_unlogged("storage")) << "it is logged: another may have the name";
  auto second = stage.drop(2);
  stage.await("log", 2);
  EXPECT_FALSE(stage.has("free"));
  stage.set_releasable(true);
  EXPECT_EQ(first.get().value_or(0), 3u);
  EXPECT_EQ(second.get().value_or(0), 3u);
  EXPECT_FALSE(stage.dropper().progress(1));
}

TEST(StorageDropperTest, AClientIsToldWithoutLocksThatTheDropCannotBeLogged) {
  DropStage stage;
  stage.set_begun();
  stage.set_durable();
  stage.set_loggable(false);
  std::future<bool> question;
  std::promise<Result<uint64_t>> told;
  bool is_answered = false;
  stage.dropper().drop(1, "storage", 5, [&](Result<uint64_t> pages) {
    // Asks on another thread. If the dropper replied with its lock held, the question would wait
    // for ever.
    question = std::async(std::launch::async,
                          [&] { return stage.dropper().is_unlogged("another storage"); });
    is_answered = question.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
    told.set_value(std::move(pages));
  });
  const Result<uint64_t> pages = told.get_future().get();
  ASSERT_FALSE(pages);
  EXPECT_EQ(pages.error().code, ExitCode::durability);
  EXPECT_TRUE(is_answered) << "the reply was called with the dropper's lock held";
  EXPECT_FALSE(stage.has("release"));
}

TEST(StorageDropperTest, TheEndOfTheClusterEndsItsWaits) {
  DropStage stage;
  auto waiting = stage.drop(1);
  stage.await("begun");
  stage.dropper().stop();
  const Result<uint64_t> told = waiting.get();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ExitCode::not_running);
  EXPECT_TRUE(told.error().message.contains("it is there again after the next start"))
      << told.error().message;
  const Result<uint64_t> late = stage.drop(2).get();
  ASSERT_FALSE(late) << "after the end";
  EXPECT_EQ(late.error().code, ExitCode::not_running);
}

TEST(StorageDropperTest, TheEndOfTheClusterCompletesWhatIsLogged) {
  DropStage stage;
  stage.set_begun();
  stage.set_durable();
  stage.set_releasable(false);
  auto logged = stage.drop(1);
  stage.await("release");
  stage.dropper().stop();
  EXPECT_TRUE(logged.get()) << "the drop is durable, and the pages end with the cluster";
}

}  // namespace
}  // namespace atolldb::test
