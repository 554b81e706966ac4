#include "tests/engine/history/random_history.h"

#include <sys/mman.h>

#include "shared/process/unique_fd.h"
#include "tests/engine/history/history_file.h"

namespace atolldb::test {

std::string run_random_history(const RandomHistoryOptions& options) {
  TestClusterOptions cluster_options;
  // Short epochs: records that died are removed, and pages recycled, within the run.
  cluster_options.epoch_interval = std::chrono::microseconds(200);
  cluster_options.pool_bytes = uint64_t{16} << 20;
  TestCluster cluster(options.nodes, options.workers_per_node, cluster_options);
  StorageControl& array = cluster.create("array", StorageType::array, 64, options.key_count);
  StorageControl& tree = cluster.create("tree", StorageType::mastertree, 40);
  StorageControl& layered = cluster.create("layered", StorageType::mastertree, 40);

  const uint32_t workers = options.nodes * options.workers_per_node;
  std::vector<UniqueFd> files;
  for (uint32_t i = 0; i < workers; ++i) files.emplace_back(memfd_create("history", MFD_CLOEXEC));
  const auto work = [&](uint32_t self, TestWorker& worker) {
    // The control segment is mapped elsewhere in a child: look the storages up again.
    ControlSegment& control = *worker.context->view().control;
    const HistoryTables tables(control.storage(array.id), control.storage(tree.id),
                               control.storage(layered.id));
    RandomWorker random(tables, self, options.seed, options.key_count);
    const std::string problem = random.run(worker, options.transactions);
    if (!problem.empty()) std::printf("worker %u: %s\n", self, problem.c_str());
    return problem.empty() && write_history(files[self].get(), random.history()) ? 0 : 1;
  };
  int failed = 0;
  if (options.processes) {
    failed = cluster.run_processes(work);
  } else {
    std::atomic<int> failures{0};
    cluster.run_threads([&](uint32_t self, TestWorker& worker) {
      failures.fetch_add(work(self, worker), std::memory_order_relaxed);
    });
    failed = failures.load(std::memory_order_relaxed);
  }
  const std::string run = "seed " + std::to_string(options.seed) + ": ";
  if (failed != 0) return run + std::to_string(failed) + " workers or nodes failed";
  History history;
  for (const UniqueFd& file : files) {
    if (!read_history(file.get(), history)) return run + "a history cannot be read";
  }
  const Verdict verdict = check_history(history);
  return verdict.phenomenon == Phenomenon::none ? "" : run + verdict.text;
}

std::string run_random_histories(RandomHistoryOptions options, uint64_t rounds) {
  std::string problem;
  for (uint64_t round = 0; round < rounds && problem.empty(); ++round, ++options.seed) {
    problem = run_random_history(options);
  }
  return problem;
}

}  // namespace atolldb::test
