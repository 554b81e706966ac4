// Jobs of a node: when they are done, and how they end when the node stops.
#include <gtest/gtest.h>

#include "tests/soc/node/job_rules.h"

namespace atolldb::test {
namespace {

TEST(JobTableTest, AJobIsDoneWhenWhatItCommittedIsDurable) {
  EXPECT_EQ(a_job_is_done_when_what_it_committed_is_durable(), "");
}

TEST(JobTableTest, AJobThatIsNotDurableWhenTheClusterFailsIsUnknown) {
  JobStage stage;
  const uint64_t id = stage.start({0, 1});
  stage.jobs().finish_worker(id, 1, "1", 12);
  stage.jobs().finish_worker(id, 0, make_error(ExitCode::failed, "no"), 0);
  auto answer = stage.wait(id);
  stage.deliver(false);
  const Json told = answer.get().value();
  EXPECT_EQ(told["done"], true);
  EXPECT_EQ(told["status"], "outcome_unknown");
  ASSERT_EQ(told["outputs"].size(), 2u);
  for (uint32_t worker = 0; worker < 2; ++worker) {
    EXPECT_EQ(told["outputs"][worker]["worker"], worker);
    EXPECT_EQ(told["outputs"][worker]["ok"], false);
    const std::string message = told["outputs"][worker]["message"];
    EXPECT_TRUE(message.contains("outcome_unknown")) << message;
  }
}

TEST(JobTableTest, ARequestThatComesAfterTheEndOfTheWaitsIsAnsweredAtOnce) {
  JobStage stage;
  const uint64_t id = stage.start({0});
  auto early = stage.wait(id);
  stage.jobs().end_waits();
  auto late = stage.wait(id);
  for (auto* answer : {&early, &late}) {
    ASSERT_TRUE(JobStage::is_told(*answer));
    EXPECT_EQ(answer->get().value()["done"], false);
  }
  stage.jobs().finish_worker(id, 0, "0", 12);
  stage.deliver(true);
  EXPECT_EQ(stage.wait(id).get().value()["done"], true);
}

TEST(JobTableTest, ATableWhoseJobsShallAllStopTakesNoNewOne) {
  JobStage stage;
  JobTable& jobs = stage.jobs();
  const auto running = jobs.add("load", "", {0});
  ASSERT_TRUE(running);
  EXPECT_FALSE((*running)->stop.load(std::memory_order_relaxed));
  jobs.stop_all();
  EXPECT_TRUE((*running)->stop.load(std::memory_order_relaxed));
  // A job that is added after stop_all is refused. It would run forever, because no request would
  // stop it.
  const auto late = jobs.add("run", "", {0});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ExitCode::not_running);
  EXPECT_NE(late.error().message.find("job run: the node stops"), std::string::npos)
      << late.error().message;
}

}  // namespace
}  // namespace atolldb::test
