// The processors of snapshot jobs: whether workers share them, and which may be idle.
#include "coordinator/snapshots/gleaner_cpus.h"

#include <gtest/gtest.h>

#include <vector>

namespace atolldb {
namespace {

using Cpus = std::vector<int32_t>;

class GleanerCpusTest : public testing::Test {
 protected:
  GleanerCpusTest() {
    config_.nodes.assign(2, NodeConfig{});
    machine_.cpus = {0, 1, 2, 3, 4, 5, 6, 7};
  }
  void set(size_t node, const Cpus& cpus, const Cpus& gleaner_cpus) {
    config_.nodes[node].cpus = cpus;
    config_.nodes[node].gleaner_cpus = gleaner_cpus;
  }

  Config config_;
  Machine machine_;
};

TEST_F(GleanerCpusTest, AreDedicatedIfNoWorkerOfAnyNodeMayUseThem) {
  EXPECT_FALSE(has_dedicated_gleaner_cpus(config_));
  set(0, {0, 1}, {4});
  set(1, {2, 3}, {5, 4});
  EXPECT_TRUE(has_dedicated_gleaner_cpus(config_));
  set(1, {2, 3}, {5, 1});
  EXPECT_FALSE(has_dedicated_gleaner_cpus(config_)) << "a worker of the other node uses CPU 1";
  set(1, {}, {5});
  EXPECT_FALSE(has_dedicated_gleaner_cpus(config_)) << "workers may use any CPU of a NUMA node";
  set(1, {2, 3}, {});
  EXPECT_FALSE(has_dedicated_gleaner_cpus(config_)) << "jobs may use any CPU";
}

TEST_F(GleanerCpusTest, ThoseOfAllNodesAreWatchedInAscendingOrder) {
  set(0, {}, {7, 4});
  EXPECT_EQ(watched_cpus(config_, machine_), machine_.cpus) << "node 1 may use any";
  set(1, {}, {5, 4});
  EXPECT_EQ(watched_cpus(config_, machine_), Cpus({4, 5, 7}));
}

TEST_F(GleanerCpusTest, NoneIsWatchedIfTheControlGroupHasAQuota) {
  machine_.cpu_quota = 8;
  EXPECT_EQ(watched_cpus(config_, machine_), machine_.cpus);
  machine_.cpu_quota = 7.5;
  EXPECT_EQ(watched_cpus(config_, machine_), Cpus());
  set(0, {}, {4});
  set(1, {}, {5});
  EXPECT_EQ(watched_cpus(config_, machine_), Cpus());
}

}  // namespace
}  // namespace atolldb
