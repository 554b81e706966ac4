// Which snapshots of a cluster are paced. The node of a paced job gets the log volume and the
// goals.
#include <gtest/gtest.h>

#include "tests/coordinator/one_record_cluster.h"

namespace atolldb::test {
namespace {

constexpr ControlOperation kFailing = ControlOperation::glean_wait;

TEST(SnapshotPacing, TheAttemptAfterAFailedOneIsNotPaced) {
  OneRecordCluster cluster(one_node_config());
  const auto first = cluster.take_snapshot();
  EXPECT_TRUE(first.has_succeeded && first.is_paced);
  const auto failed = cluster.take_snapshot(kFailing);
  EXPECT_TRUE(!failed.has_succeeded && failed.is_paced);
  const auto again = cluster.take_snapshot(kFailing);
  EXPECT_TRUE(!again.has_succeeded && !again.is_paced);
  const auto repeated = cluster.take_snapshot();
  EXPECT_TRUE(repeated.has_succeeded && !repeated.is_paced);
  const auto last = cluster.take_snapshot();
  EXPECT_TRUE(last.has_succeeded && last.is_paced);
}

TEST(SnapshotPacing, JobsOnProcessorsWithoutWorkersAreNotPaced) {
  Config config = one_node_config();
  config.nodes[0].cpus = {0};
  config.nodes[0].gleaner_cpus = {1};  // on a machine without processor 1, any is used
  OneRecordCluster cluster(config);
  const auto taken = cluster.take_snapshot();
  EXPECT_TRUE(taken.has_succeeded && !taken.is_paced);
}

TEST(SnapshotPacing, TheConfigCanSwitchItOff) {
  Config config = one_node_config();
  config.gleaner.pacing = false;
  OneRecordCluster cluster(config);
  const auto taken = cluster.take_snapshot();
  EXPECT_TRUE(taken.has_succeeded && !taken.is_paced);
}

}  // namespace
}  // namespace atolldb::test
