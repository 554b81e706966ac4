// The checkpoint services of the nodes of a test cluster. Workers are threads of the test.
#pragma once

#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/checkpoint/range_walk.h"
#include "shared/base/limits.h"
#include "soc/checkpoint/checkpoint_service.h"
#include "tests/soc/control_answer.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

class ServiceNodes {
 public:
  /// `files`: thread-safe. `loggers`: of the nodes; none: they log nothing.
  ServiceNodes(TestCluster& cluster, FileSystem& files, const std::vector<Logger>& loggers = {})
      : cluster_(cluster) {
    for (uint32_t i = 0; i < cluster.worker_count(); ++i) {
      running_.push_back(std::make_unique<std::mutex>());
    }
    for (uint32_t node = 0; node < cluster.node_count(); ++node) {
      CheckpointResources resources;
      resources.view = &cluster.view();
      resources.pool = &cluster.pool(node);
      resources.metrics = [&cluster, node](uint32_t slot) -> WorkerMetrics& {
        return cluster.metrics(node, slot);
      };
      resources.file_system = &files;
      resources.node = node;
      resources.workers = cluster.worker_count() / cluster.node_count();
      resources.first_slot = resources.workers + 1;
      resources.slots = kMaxInstallers;
      resources.write_set = TestClusterOptions().limits.write_set;
      resources.directory = [](uint32_t) { return std::string("/data"); };
      resources.data_dir = "/data";
      resources.submit = [this, node, count = resources.workers](uint32_t worker, WorkerTask task) {
        return submit(node * count + worker, worker, std::move(task));
      };
      services_.push_back(std::make_unique<CheckpointService>(
          std::move(resources), loggers.empty() ? make_silent_logger("test") : loggers.at(node)));
    }
  }

  CheckpointService& service(uint32_t node) { return *services_[node]; }
  uint32_t count() const { return static_cast<uint32_t>(services_.size()); }

  Result<Json> ask(uint32_t node, ControlOperation operation, Json body) {
    ControlAnswer answer;
    services_[node]->handle(ControlRequest(operation, std::move(body)), answer.reply());
    return answer.get();
  }
  /// Sends the request to all nodes. Returns the answers of all, or the first error.
  Result<std::vector<Json>> ask_all(ControlOperation operation, const Json& body) {
    std::vector<Json> answers;
    for (uint32_t node = 0; node < count(); ++node) {
      auto answer = ask(node, operation, body);
      if (!answer) return std::unexpected(answer.error());
      answers.push_back(*std::move(answer));
    }
    return answers;
  }
  /// Waits until the workers are idle. An answer may come before the end of its last task.
  void join_workers() {
    std::vector<std::jthread> ended;
    const std::lock_guard guard(mutex_);
    ended.swap(threads_);
  }
  /// From now on the workers take no tasks.
  void close_workers() {
    const std::lock_guard guard(mutex_);
    is_closed_ = true;
  }

 private:
  Result<void> submit(uint32_t index, uint32_t ordinal, WorkerTask task) {
    const std::lock_guard guard(mutex_);
    if (is_closed_) return make_error(ExitCode::not_running, "the worker has ended");
    threads_.emplace_back([this, index, ordinal, task = std::move(task)] {
      // A worker runs one task after the other.
      const std::lock_guard running(*running_[index]);
      TestWorker& worker = cluster_.worker(index);
      WorkerEnvironment environment{*worker.transaction, worker.backoff, ordinal};
      task(environment);
      CHECK(!worker.transaction->is_active());
    });
    return {};
  }

  TestCluster& cluster_;
  std::vector<std::unique_ptr<std::mutex>> running_;  // one per worker
  std::mutex mutex_;
  bool is_closed_ = false;             // guarded by mutex_
  std::vector<std::jthread> threads_;  // guarded by mutex_
  // Destroyed first, because replays wait for tasks of the threads.
  std::vector<std::unique_ptr<CheckpointService>> services_;
};

}  // namespace atolldb::test
