// Threads of snapshot jobs: automatic numbers by processors, nodes and memory, and their limits.
#include "shared/config/job_threads.h"

#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <tuple>

#include "shared/base/limits.h"

namespace atolldb {
namespace {

constexpr uint64_t kOneGiB = uint64_t{1} << 30;

Machine machine_of(int32_t cpus, uint64_t memory_bytes = 1024 * kOneGiB) {
  Machine machine;
  machine.cpus.resize(static_cast<size_t>(cpus));
  std::iota(machine.cpus.begin(), machine.cpus.end(), 0);
  machine.memory_bytes = memory_bytes;
  return machine;
}

Config nodes_of(size_t nodes, uint32_t workers) {
  Config config;
  config.nodes.assign(nodes, NodeConfig{});
  for (NodeConfig& node : config.nodes) node.workers = workers;
  return config;
}

struct Case {
  int32_t cpus;
  size_t nodes;
  uint32_t workers;  // per node
  uint32_t running;  // number of mappers, and of reducers, of each node
  uint32_t recovery;
};

TEST(JobThreadsTest, AutomaticNumbersFollowProcessorsNodesAndWorkers) {
  const Case cases[] = {
      {1, 1, 1, 1, 1},     {1, 4, 1, 1, 1},   {2, 1, 1, 1, 2},    {2, 2, 1, 1, 1},
      {2, 3, 2, 1, 1},     {8, 1, 1, 3, 8},   {8, 1, 8, 1, 8},    {8, 2, 1, 1, 4},
      {8, 2, 2, 1, 4},     {8, 4, 2, 1, 2},   {64, 1, 1, 16, 16}, {64, 1, 62, 1, 16},
      {64, 2, 8, 12, 16},  {64, 4, 8, 4, 16}, {64, 8, 8, 1, 8},   {64, 255, 1, 1, 1},
      {64, 2, 250, 1, 16},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(std::to_string(each.cpus) + " CPUs, " + std::to_string(each.nodes) + " nodes of " +
                 std::to_string(each.workers) + " workers");
    Config config = nodes_of(each.nodes, each.workers);
    resolve_job_threads(config, machine_of(each.cpus));
    for (const NodeConfig& node : config.nodes) {
      EXPECT_EQ(running_threads(node), (JobThreads{each.running, each.running}));
      EXPECT_EQ(recovery_threads(node), (JobThreads{each.recovery, each.recovery}));
      EXPECT_EQ(inbox_count(node), each.recovery);
    }
  }
}

TEST(JobThreadsTest, AQuotaCountsAsSoManyProcessors) {
  Config config = nodes_of(1, 1);
  Machine machine = machine_of(64);
  machine.cpu_quota = 3.5;
  resolve_job_threads(config, machine);
  EXPECT_EQ(running_threads(config.nodes[0]), (JobThreads{1, 1}));
  EXPECT_EQ(recovery_threads(config.nodes[0]), (JobThreads{4, 4}));
}

TEST(JobThreadsTest, NumbersOfTheConfigStay) {
  for (const uint32_t given : {1u, 2u, 64u}) {
    Config config = nodes_of(2, 1);
    config.nodes[0].mappers = given;
    config.nodes[1].reducers = given;
    config.nodes[1].recovery_threads = 1;
    resolve_job_threads(config, machine_of(16));
    EXPECT_EQ(running_threads(config.nodes[0]), (JobThreads{given, 3}));
    EXPECT_EQ(recovery_threads(config.nodes[0]), (JobThreads{std::max(given, 8u), 8}));
    EXPECT_EQ(running_threads(config.nodes[1]), (JobThreads{3, given}));
    EXPECT_EQ(recovery_threads(config.nodes[1]), (JobThreads{3, std::max(given, 1u)}))
        << "a recovery has no fewer threads than a running cluster";
    EXPECT_EQ(inbox_count(config.nodes[1]), given);
  }
}

TEST(JobThreadsTest, GleanerCpusReplaceTheShareOfAllProcessors) {
  Config config = nodes_of(2, 1);
  for (size_t i = 0; i < 2; ++i) {
    config.nodes[i].cpus = {static_cast<int32_t>(i)};
    config.nodes[i].gleaner_cpus = {2, 3, 4, 5, 6, 7};
  }
  config.nodes[1].gleaner_cpus = {0, 1};  // the workers' processors
  resolve_job_threads(config, machine_of(64));
  EXPECT_EQ(running_threads(config.nodes[0]), (JobThreads{3, 3}));
  EXPECT_EQ(recovery_threads(config.nodes[0]), (JobThreads{6, 6}));
  EXPECT_EQ(running_threads(config.nodes[1]), (JobThreads{1, 1}));
  EXPECT_EQ(recovery_threads(config.nodes[1]), (JobThreads{2, 2}));
}

TEST(JobThreadsTest, InboxesTakeNoMoreThanTheirShareOfTheMemory) {
  for (const auto& [memory, expected] : {std::pair{kOneGiB / 8, 1u},
                                         {kOneGiB / 4, 1u},
                                         {kOneGiB / 2, 2u},
                                         {kOneGiB, 4u},
                                         {4 * kOneGiB, 16u}}) {
    Config config = nodes_of(2, 1);
    ASSERT_EQ(config.memory.exchange, kOneGiB / 128);
    resolve_job_threads(config, machine_of(64, memory));
    EXPECT_EQ(recovery_threads(config.nodes[0]).reducers, expected) << memory;
  }
}

TEST(JobThreadsTest, OneWorkerMoreRunsThanTheNodeHasProcessors) {
  for (const auto& [cpus, nodes, expected] :
       {std::tuple{1, 1u, 2u}, {1, 4u, 2u}, {2, 2u, 2u}, {2, 1u, 3u}, {3, 2u, 3u}, {64, 4u, 17u}}) {
    Config config = nodes_of(nodes, 250);
    resolve_job_threads(config, machine_of(cpus));
    EXPECT_EQ(config.nodes[0].running_workers, expected) << cpus << " CPUs, " << nodes << " nodes";
  }
  Config config = nodes_of(2, 8);
  config.nodes[0].cpus = {0, 1, 2};
  config.nodes[1].running_workers = 5;
  resolve_job_threads(config, machine_of(64));
  EXPECT_EQ(config.nodes[0].running_workers, 4u);
  EXPECT_EQ(config.nodes[1].running_workers, 5u);
  config = nodes_of(1, 8);
  config.nodes[0].cpus.assign(kMaxWorkersPerNode + 1, 0);
  resolve_job_threads(config, machine_of(1000));
  EXPECT_EQ(config.nodes[0].running_workers, kMaxWorkersPerNode);
}

TEST(JobThreadsTest, WithoutResolvedNumbersThereIsOneOfEach) {
  EXPECT_EQ(running_threads(NodeConfig{}), (JobThreads{1, 1}));
  EXPECT_EQ(recovery_threads(NodeConfig{}), (JobThreads{1, 1}));
}

}  // namespace
}  // namespace atolldb
