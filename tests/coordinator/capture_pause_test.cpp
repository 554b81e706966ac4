// Pauses of captures: how many jobs capture no pages after a job with captured pages has failed
// (R75).
#include <gtest/gtest.h>

#include <vector>

#include "tests/coordinator/one_record_cluster.h"

namespace atolldb::test {
namespace {

/// Takes snapshots until a job captures pages. Returns how many jobs before it captured none. Jobs
/// without captured pages succeed. `fails`: the job that captures pages fails.
uint32_t jobs_without_captures(OneRecordCluster& cluster, bool fails) {
  for (uint32_t without = 0; without < 100; ++without) {
    const auto taken =
        cluster.take_snapshot(fails ? ControlOperation::glean_capture : ControlOperation::unknown);
    EXPECT_EQ(taken.has_succeeded, !(fails && taken.has_captured));
    if (taken.has_captured) return without;
  }
  ADD_FAILURE() << "no job captures pages again";
  return 100;
}

TEST(CapturePause, DoublesWithEachFailureAndEndsWithASuccess) {
  OneRecordCluster cluster(one_node_config());
  EXPECT_EQ(jobs_without_captures(cluster, true), 0u);
  std::vector<uint32_t> pauses;
  for (int i = 0; i < 3; ++i) pauses.push_back(jobs_without_captures(cluster, true));
  EXPECT_EQ(pauses, (std::vector<uint32_t>{1, 2, 4}));
  EXPECT_EQ(jobs_without_captures(cluster, false), 8u);
  EXPECT_EQ(jobs_without_captures(cluster, true), 0u) << "no pause after a success";
  EXPECT_EQ(jobs_without_captures(cluster, false), 1u) << "the pauses begin again";
}

TEST(CapturePause, NoJobCapturesPagesIfTheConfigForbidsIt) {
  Config config = one_node_config();
  config.gleaner.capture_pages = false;
  OneRecordCluster cluster(config);
  for (int i = 0; i < 3; ++i) {
    const auto taken = cluster.take_snapshot();
    EXPECT_TRUE(taken.has_succeeded && !taken.has_captured);
  }
}

}  // namespace
}  // namespace atolldb::test
