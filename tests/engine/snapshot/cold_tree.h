// Bodies of tests of Master-trees whose pages are in snapshots; empty, or what went wrong.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/mastertree/inspect.h"
#include "tests/engine/mastertree_oracle.h"
#include "tests/engine/snapshot/cache_rules.h"
#include "tests/engine/snapshot/snapshot_series.h"
#include "tests/support/seed.h"

namespace atolldb::test {

/// Rounds of random transactions of several workers, each on a cluster that begins with the
/// snapshot of all that was committed before and without any volatile page. The cache is so small
/// that frames are used again all the time.
inline std::string cold_oracle(KeyShape shape, uint32_t workers, uint64_t rounds,
                               uint64_t transactions) {
  OracleOptions options{.shape = shape, .transactions = transactions, .seed = seed()};
  options.workers = workers;
  options.keys_per_worker = 600;
  std::vector<OracleWorker> oracles;
  for (uint32_t i = 0; i < workers; ++i) oracles.emplace_back(options, i);
  std::unique_ptr<SnapshotSeries> series;
  OracleWorker::Model before;
  for (uint64_t round = 0; round < rounds; ++round) {
    TestCluster cluster(1, workers, {.start_epoch = 1 + 1'000'000 * round});
    StorageControl& storage = cluster.create("tree", StorageType::mastertree);
    if (series == nullptr) {
      series = std::make_unique<SnapshotSeries>(storage.id, StorageType::mastertree);
    }
    storage.root.snapshot_word.store(series->root().word(), std::memory_order_release);
    TestCache cache(series->files(), 16, workers);
    cluster.use_snapshots(cache.cache);
    std::vector<std::string> problems(workers);
    cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      problems[index] = oracles[index].run(worker, MasterTree(storage));
    });
    OracleWorker::Model now;
    for (uint32_t i = 0; i < workers; ++i) {
      if (!problems[i].empty()) return problems[i] + " in round " + std::to_string(round);
      now.insert(oracles[i].model().begin(), oracles[i].model().end());
    }
    TreeStatistics statistics;
    const std::string unsound = check_tree(cluster.view(), storage, statistics);
    if (!unsound.empty()) return unsound;
    MadeLogs logs = changes_between(storage.id, before, now, 1'000'000 * (round + 1));
    const std::string problem = series->take(logs, 1'000'000 * (round + 1));
    if (!problem.empty()) return problem;
    before = std::move(now);
  }
  return {};
}

}  // namespace atolldb::test
