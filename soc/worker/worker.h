// A worker thread, which runs transactions. It takes tasks from its own bounded queue. While idle,
// it holds no page reference (R9). Before it sleeps, it checks the sessions for requests for a
// short time. It then sleeps without a time-out, unless it has retired pages or hints. While it has
// no task, the current epoch may end early for clients that wait (IdleWorker).
#pragma once

#include <atomic>
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
#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/memory/epoch_end.h"
#include "shared/memory/page_pool.h"

namespace atolldb {

/// The environment of a task on its worker.
struct WorkerEnvironment {
  Transaction& transaction;
  Backoff& backoff;
  uint32_t ordinal;
};
using WorkerTask = std::function<void(WorkerEnvironment&)>;

/// Work that an idle worker does for a short time before it sleeps.
class IdleWork {
 public:
  virtual ~IdleWork() = default;
  /// Returns whether it has found work, for this worker or for others. Ends soon after `is_wanted`
  /// returns true. Thread: the worker `ordinal`, which holds no page reference.
  virtual bool help(uint32_t ordinal, const std::function<bool()>& is_wanted) = 0;
};

struct WorkerSettings {
  const ClusterView* view = nullptr;
  PagePool* pool = nullptr;
  WorkerMetrics* metrics = nullptr;
  TransactionLimits limits;
  std::byte* local = nullptr;                     // memory of limits.local_bytes() bytes
  SnapshotCache* snapshots = nullptr;             // null: the node reads no snapshots
  const PublishedSnapshots* published = nullptr;  // snapshots for new transactions; null: none
  PageDirectory* directory = nullptr;             // null: none
  uint32_t whole_version_bytes = 0;               // see WorkerContext::use_whole_versions
  RunGate* gate = nullptr;                        // null: all workers may run at the same time
  uint32_t node = 0;
  uint32_t ordinal = 0;
  std::vector<int32_t> cpus;  // CPUs of the worker; empty: any
};

class Worker {
 public:
  /// Limit of the queued tasks of one worker.
  static constexpr size_t kMaxQueuedTasks = 1024;

  Worker(WorkerSettings settings, Logger logger);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { stop(); }

  void start();
  /// Lets the worker help while it is idle. REQUIRES: `work` exists until the worker has ended.
  void help_with(IdleWork& work) { idle_work_.store(&work, std::memory_order_release); }
  /// Queues a task. An error names the limit, or says that the worker has ended.
  Result<void> submit(WorkerTask task);
  /// Refuses new tasks from now on. Does not wait.
  void close();
  /// Calls close, then waits until the thread has run all queued tasks and has ended.
  void stop();

 private:
  void run();
  /// Returns the next task, or an empty one if the worker must end.
  WorkerTask next(Transaction& transaction);
  /// Returns whether a task waits, or the worker must end. REQUIRES: the lock is not held.
  bool is_wanted();
  /// Helps while there is work. Returns when no more work was found, or a task waits.
  void help();
  void sleep_until_task(Transaction& transaction, std::unique_lock<std::mutex>& lock);
  /// Recycles pages and runs hints until a task waits, or the worker must end.
  void await_task(WorkerContext& context, std::unique_lock<std::mutex>& lock);

  WorkerSettings settings_;
  Logger logger_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<WorkerTask> tasks_;               // guarded by mutex_
  bool closed_ = false;                        // guarded by mutex_
  const IdleWorker* idle_ = nullptr;           // guarded by mutex_; null: the worker is not idle
  std::atomic<IdleWork*> idle_work_{nullptr};  // release and acquire: the object is complete
  const std::function<bool()> is_wanted_{[this] { return is_wanted(); }};
  std::thread thread_;
};

}  // namespace atolldb
