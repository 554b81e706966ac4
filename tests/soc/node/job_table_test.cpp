// Jobs of a node that stops.
#include "soc/node/job_table.h"

#include <gtest/gtest.h>

namespace atolldb {
namespace {

TEST(JobTableTest, ATableWhoseJobsShallAllStopTakesNoNewOne) {
  JobTable jobs;
  const auto running = jobs.add("load", "", {0});
  ASSERT_TRUE(running);
  EXPECT_FALSE((*running)->stop.load(std::memory_order_relaxed));
  jobs.stop_all();
  EXPECT_TRUE((*running)->stop.load(std::memory_order_relaxed));
  // It would run without an end: nobody asks it to stop any more.
  const auto late = jobs.add("run", "", {0});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ExitCode::not_running);
  EXPECT_NE(late.error().message.find("job run: the node stops"), std::string::npos)
      << late.error().message;
}

}  // namespace
}  // namespace atolldb
