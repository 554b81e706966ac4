// Random transactions on a tree whose records are in a snapshot, and whose changes go to a delta
// tree. Snapshots are installed and the delta tree is drained meanwhile.
#pragma once

#include <deque>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/mastertree/cursor.h"
#include "tests/engine/install/cold_tree.h"
#include "tests/engine/serializability/bodies.h"

namespace atolldb::test {

/// Reads the whole tree. REQUIRES: no transaction is under way.
inline Status read_content(TestWorker& worker, const MasterTree& tree,
                           OracleWorker::Model& content) {
  const Status status = worker.run([&](Transaction& txn) {
    content.clear();
    MasterTreeCursor cursor(tree, txn, {}, true);
    Status one = cursor.next();
    for (; one == Status::ok; one = cursor.next()) {
      std::string value(cursor.payload_bytes(), '\0');
      one = cursor.get(value.data(), static_cast<uint32_t>(value.size()));
      if (one != Status::ok) return one;
      const Bytes key = cursor.key();
      content.emplace(std::string(reinterpret_cast<const char*>(key.data()), key.size()), value);
    }
    return one == Status::end_of_scan ? Status::ok : one;
  });
  worker.context->leave();
  return status;
}

/// Adds records before all layered keys. The page at the root of a tree is never dropped, so the
/// keys must be below it.
inline Status add_pages_before(TestWorker& worker, const MasterTree& tree) {
  const Status status = worker.run([&](Transaction& txn) {
    Status one = Status::ok;
    for (uint32_t i = 0; i < 500 && one == Status::ok; ++i) {
      one = tree.insert(txn, bytes_of("a" + std::to_string(1000 + i)), bytes_of("12345678"));
    }
    return one;
  });
  worker.context->leave();
  return status;
}

/// `is_layered`: the storage with the delta tree is that of the layered keys. In each round, a
/// snapshot of the rounds before is installed. In some rounds this ends before the transactions
/// begin, so that all their records are in the snapshot only.
inline WorkloadResult run_with_delta_tree(uint32_t workers, uint64_t rounds, bool is_layered,
                                          const WorkloadOptions& options) {
  WarmTree warm(workers);
  const MasterTree tree(warm.storage);
  WorkloadStorages storages = WorkloadStorages::create(warm.cluster, options);
  (is_layered ? storages.layered : storages.tree) = warm.storage.id;
  WorkloadResult result;
  std::deque<WorkloadWorker> workloads;
  for (uint32_t i = 0; i < workers; ++i) {
    workloads.emplace_back(options, storages, i, warm.cluster.worker(i));
  }
  const Status added = add_pages_before(
      warm.cluster.worker(0), MasterTree(warm.cluster.view().control->storage(storages.layered)));
  if (added != Status::ok) result.problems.emplace_back(to_string(added));
  std::mt19937_64 random(options.seed);
  OracleWorker::Model before;
  std::vector<GleanedLog> logs;
  uint64_t epoch = 0;
  uint64_t delta_records = 0;
  for (uint64_t round = 0; round < rounds && result.problems.empty(); ++round) {
    std::string unsound;
    const bool is_idle = random() % 3 == 0;
    const bool drops = is_idle || random() % 4 != 0;
    warm.storage.uses_delta.store(random() % 8 != 0, std::memory_order_relaxed);
    std::thread gleaner([&] {
      if (epoch == 0) return;
      // Pages of layers are dropped from the bottom up, some with a later snapshot (R71).
      for (int left = is_idle ? 4 : 1; left > 0 && unsound.empty(); --left) {
        unsound = warm.take(std::exchange(logs, {}), is_idle ? warm.settle() : epoch, 0);
        if (unsound.empty()) unsound = warm.install(drops ? drop_all : keep_all);
        if (unsound.empty()) unsound = warm.close_unneeded();
      }
    });
    if (is_idle) gleaner.join();
    std::vector<std::string> problems(workers);
    warm.cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      problems[index] = workloads[index].run();
      worker.context->leave();
    });
    if (!is_idle) gleaner.join();
    for (const std::string& problem : problems) {
      if (!problem.empty()) result.problems.push_back(problem);
    }
    if (!unsound.empty()) result.problems.push_back(unsound);
    TreeStatistics statistics;
    unsound = warm.check(statistics);
    if (!unsound.empty()) result.problems.push_back(unsound);
    delta_records += statistics.delta_records;
    epoch = warm.settle();
    OracleWorker::Model now;
    const Status status = read_content(warm.cluster.worker(0), tree, now);
    if (status != Status::ok) result.problems.emplace_back(to_string(status));
    logs = changes_between(before, now, epoch);
    before = std::move(now);
  }
  if (delta_records == 0 || warm.totals.drained == 0) {
    result.problems.emplace_back("the delta tree was hardly used");
  }
  History all;
  for (WorkloadWorker& workload : workloads) {
    History& history = workload.history();
    all.insert(all.end(), std::make_move_iterator(history.begin()),
               std::make_move_iterator(history.end()));
  }
  conclude(warm.cluster, workers, options, storages, all, result);
  return result;
}

}  // namespace atolldb::test
