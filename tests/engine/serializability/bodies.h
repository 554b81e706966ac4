// Runs the random workload in threads or in processes, and passes the history to the checker.
#pragma once

#include "tests/engine/serializability/checker.h"
#include "tests/engine/serializability/workload.h"

namespace atolldb::test {

struct WorkloadResult {
  Verdict verdict;
  // problems of single workers, including torn reads and wrong sums
  std::vector<std::string> problems;
  uint64_t attempts = 0;
  uint64_t commits = 0;
  uint64_t splits = 0;
  uint64_t compactions = 0;
  uint64_t layers = 0;
  uint64_t early_locks = 0;

  /// Returns true if no worker and no check found a problem.
  bool is_sound() const { return problems.empty() && verdict.anomaly == Anomaly::none; }
  std::string text() const;
};

/// Ends a run: reads everything after all workers have ended. The content must be what they wrote,
/// and the trees must be sound. Checks `history`, and sets the rest of `result`.
void conclude(TestCluster& cluster, uint32_t workers_per_node, const WorkloadOptions& options,
              const WorkloadStorages& storages, History& history, WorkloadResult& result);

/// Runs one worker per thread of this process.
WorkloadResult run_in_threads(uint32_t nodes, uint32_t workers_per_node,
                              const WorkloadOptions& options);

/// Runs one process per node, each with its own mappings.
WorkloadResult run_in_processes(uint32_t nodes, uint32_t workers_per_node,
                                const WorkloadOptions& options);

}  // namespace atolldb::test
