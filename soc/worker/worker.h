// A thread that runs transactions: takes tasks from its own bounded queue; idle, it holds no page
// reference and sleeps without a time-out.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"
#include "engine/transaction/worker_context.h"
#include "shared/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

/// What a task finds on its worker.
struct WorkerEnvironment {
  Transaction& transaction;
  Backoff& backoff;
  uint32_t ordinal;
};
using WorkerTask = std::function<void(WorkerEnvironment&)>;

struct WorkerSettings {
  const ClusterView* view = nullptr;
  PagePool* pool = nullptr;
  WorkerMetrics* metrics = nullptr;
  TransactionLimits limits;
  std::byte* local = nullptr;                     // limits.local_bytes() bytes
  SnapshotCache* snapshots = nullptr;             // null: there are none
  const PublishedSnapshots* published = nullptr;  // what transactions may begin with, likewise
  uint32_t node = 0;
  uint32_t ordinal = 0;
  std::vector<int32_t> cpus;  // empty: any
};

class Worker {
 public:
  /// Tasks that wait for one worker.
  static constexpr size_t kMaxQueuedTasks = 1024;

  Worker(WorkerSettings settings, Logger logger);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  void start();
  /// The error names the limit, or says that the worker has ended.
  Result<void> submit(WorkerTask task);
  /// Refuses new tasks from now on; waits for nothing.
  void close();
  /// close, and waits until the thread has run what is queued and has ended.
  void stop();

 private:
  void run();
  /// The next task; an empty one when the worker shall end.
  WorkerTask next(Transaction& transaction);
  void sleep_until_task(Transaction& transaction, std::unique_lock<std::mutex>& lock);

  WorkerSettings settings_;
  Logger logger_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkerTask> tasks_;  // guarded by mutex_
  bool closed_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
