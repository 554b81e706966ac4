// A worker of an in-test cluster as a real thread with a queue of tasks (soc/worker/worker.h).
#pragma once

#include <cstdlib>
#include <memory>
#include <utility>

#include "shared/logging/logger.h"
#include "soc/worker/worker.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// Worker 0 of node 0, which runs from the constructor to the destructor. REQUIRES: no other thread
/// uses the worker's slot, and the cluster outlives this object.
class WorkerThread {
 public:
  WorkerThread(TestCluster& cluster, Logger logger) {
    WorkerSettings settings;
    settings.view = &cluster.view();
    settings.pool = &cluster.pool(0);
    settings.metrics = &metrics_;
    settings.limits = TestClusterOptions().limits;
    local_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, settings.limits.local_bytes())));
    settings.local = local_.get();
    worker_ = std::make_unique<Worker>(std::move(settings), std::move(logger));
    worker_->start();
  }
  ~WorkerThread() { worker_->stop(); }
  WorkerThread(const WorkerThread&) = delete;
  WorkerThread& operator=(const WorkerThread&) = delete;

  Worker& get() { return *worker_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  WorkerMetrics metrics_;
  std::unique_ptr<std::byte, Free> local_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace atolldb::test
