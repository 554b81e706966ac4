// Test bodies of the Master-tree oracle, shared by the ordinary build and the one with tiny pages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "engine/mastertree/inspect.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/support/seed.h"

namespace atolldb::test {

inline void expect_sound(TestCluster& cluster, StorageControl& storage, uint64_t records) {
  TreeStatistics statistics;
  EXPECT_EQ(check_tree(cluster.view(), storage, statistics), "");
  EXPECT_EQ(statistics.records, records);
}

inline void oracle_with_threads(KeyShape shape, uint32_t nodes, uint32_t workers_per_node,
                                uint64_t transactions) {
  OracleOptions options{.shape = shape, .transactions = transactions, .seed = seed()};
  options.workers = nodes * workers_per_node;
  TestCluster cluster(nodes, workers_per_node);
  StorageControl& storage = cluster.create("tree", storage_type_of(shape));
  std::vector<std::string> problems(options.workers);
  std::vector<size_t> sizes(options.workers);
  cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    OracleWorker oracle(options, index);
    problems[index] = oracle.run(worker, MasterTree(storage));
    sizes[index] = oracle.size();
  });
  uint64_t records = 0;
  for (uint32_t i = 0; i < options.workers; ++i) {
    EXPECT_EQ(problems[i], "") << "worker " << i;
    records += sizes[i];
  }
  expect_sound(cluster, storage, records);
}

inline void oracle_with_processes(KeyShape shape, uint32_t nodes, uint64_t transactions) {
  OracleOptions options{.shape = shape, .transactions = transactions, .seed = seed()};
  options.workers = nodes;
  TestCluster cluster(nodes, 1);
  StorageControl& storage = cluster.create("tree", storage_type_of(shape));
  const uint32_t id = storage.id;
  const int failed = cluster.run_processes([&](uint32_t index, TestWorker& worker) {
    StorageControl& here = worker.context->view().control->storage(id);
    OracleWorker oracle(options, index);
    const std::string problem = oracle.run(worker, MasterTree(here));
    if (!problem.empty()) std::fprintf(stderr, "node %u: %s\n", index, problem.c_str());
    return problem.empty() ? 0 : 1;
  });
  EXPECT_EQ(failed, 0);
  TreeStatistics statistics;
  EXPECT_EQ(check_tree(cluster.view(), storage, statistics), "");
}

}  // namespace atolldb::test
