#include "tests/engine/serializability/bodies.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

#include "engine/mastertree/inspect.h"
#include "shared/base/check.h"

namespace atolldb::test {

namespace {

void add_counters(TestCluster& cluster, uint32_t workers_per_node, WorkloadResult& result) {
  for (uint32_t node = 0; node < cluster.node_count(); ++node) {
    for (uint32_t ordinal = 0; ordinal < workers_per_node; ++ordinal) {
      const WorkerMetrics& metrics = cluster.metrics(node, ordinal);
      result.splits += metrics.splits.get();
      result.compactions += metrics.compactions.get();
      result.layers += metrics.next_layers.get();
      result.early_locks += metrics.early_locks.get();
    }
  }
}

}  // namespace

void conclude(TestCluster& cluster, uint32_t workers_per_node, const WorkloadOptions& options,
              const WorkloadStorages& storages, History& history, WorkloadResult& result) {
  WorkloadWorker reader(options, storages, cluster.worker_count(), cluster.worker(0));
  const std::string problem = reader.read_all();
  if (!problem.empty()) result.problems.push_back("the last reader: " + problem);
  history.insert(history.end(), reader.history().begin(), reader.history().end());
  for (const uint32_t id : {storages.tree, storages.layered}) {
    TreeStatistics statistics;
    const std::string wrong =
        check_tree(cluster.view(), cluster.view().control->storage(id), statistics);
    if (!wrong.empty()) result.problems.push_back("tree " + std::to_string(id) + ": " + wrong);
  }
  add_counters(cluster, workers_per_node, result);
  for (const HistoryTransaction& txn : history) {
    ++result.attempts;
    if (txn.committed) ++result.commits;
  }
  result.verdict = check_history(history);
}

namespace {

/// An in-memory file that a child process writes and its parent reads.
class SharedFile {
 public:
  SharedFile() : fd_(memfd_create("history", MFD_CLOEXEC)) { CHECK(fd_ >= 0); }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  SharedFile(SharedFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  ~SharedFile() {
    if (fd_ >= 0) close(fd_);
  }
  void write_all(const void* data, size_t bytes) {
    const auto* from = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t written = write(fd_, from, bytes);
      CHECK(written > 0);
      from += written;
      bytes -= static_cast<size_t>(written);
    }
  }
  std::vector<uint64_t> read_words() const {
    struct stat about{};
    CHECK(fstat(fd_, &about) == 0);
    std::vector<uint64_t> words(static_cast<size_t>(about.st_size) / 8);
    auto* to = reinterpret_cast<char*>(words.data());
    for (size_t done = 0; done < words.size() * 8;) {
      const ssize_t got = pread(fd_, to + done, words.size() * 8 - done, static_cast<off_t>(done));
      CHECK(got > 0);
      done += static_cast<size_t>(got);
    }
    return words;
  }

 private:
  int fd_;
};

}  // namespace

std::string WorkloadResult::text() const {
  std::string text = std::to_string(commits) + " of " + std::to_string(attempts) +
                     " attempts committed, " + std::to_string(verdict.edges) + " edges, " +
                     std::to_string(splits) + " splits, " + std::to_string(compactions) +
                     " compactions, " + std::to_string(layers) + " new layers, " +
                     std::to_string(early_locks) + " early locks";
  for (const std::string& problem : problems) text += "\n" + problem;
  if (verdict.anomaly != Anomaly::none) text += "\n" + verdict.text;
  return text;
}

WorkloadResult run_in_threads(uint32_t nodes, uint32_t workers_per_node,
                              const WorkloadOptions& options) {
  TestCluster cluster(nodes, workers_per_node);
  const WorkloadStorages storages = WorkloadStorages::create(cluster, options);
  std::vector<std::string> problems(cluster.worker_count());
  std::vector<History> histories(cluster.worker_count());
  cluster.run_threads([&](uint32_t index, TestWorker& worker) {
    WorkloadWorker workload(options, storages, index, worker);
    problems[index] = workload.run();
    histories[index] = std::move(workload.history());
  });
  WorkloadResult result;
  History all;
  for (uint32_t i = 0; i < cluster.worker_count(); ++i) {
    if (!problems[i].empty()) result.problems.push_back(problems[i]);
    all.insert(all.end(), std::make_move_iterator(histories[i].begin()),
               std::make_move_iterator(histories[i].end()));
  }
  conclude(cluster, workers_per_node, options, storages, all, result);
  return result;
}

WorkloadResult run_in_processes(uint32_t nodes, uint32_t workers_per_node,
                                const WorkloadOptions& options) {
  TestCluster cluster(nodes, workers_per_node);
  const WorkloadStorages storages = WorkloadStorages::create(cluster, options);
  cluster.worker(0).context->leave();
  std::vector<SharedFile> files(cluster.worker_count());
  const int failed = cluster.run_processes([&](uint32_t index, TestWorker& worker) {
    WorkloadWorker workload(options, storages, index, worker);
    const std::string problem = workload.run();
    if (!problem.empty()) std::fprintf(stderr, "worker %u: %s\n", index, problem.c_str());
    const std::vector<uint64_t> words = pack(workload.history());
    files[index].write_all(words.data(), words.size() * 8);
    return problem.empty() ? 0 : 1;
  });
  WorkloadResult result;
  if (failed != 0) result.problems.push_back(std::to_string(failed) + " processes failed");
  History all;
  for (const SharedFile& file : files) unpack(file.read_words(), all);
  conclude(cluster, workers_per_node, options, storages, all, result);
  return result;
}

}  // namespace atolldb::test
