// Early ends of epochs: a client waits for the durability of the current epoch, and no worker of
// the cluster has anything to do. Waiting longer would then not add transactions to the epoch.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

/// Raises the word to `value`, if it is lower. Returns whether it was raised. Thread: any.
inline bool raise_shared(std::atomic<uint64_t>& word, uint64_t value) {
  uint64_t seen = word.load(std::memory_order_relaxed);
  while (seen < value) {
    // seq_cst: see request_epoch_end.
    if (word.compare_exchange_weak(seen, value, std::memory_order_seq_cst)) return true;
  }
  return false;
}

/// Records that a client waits until `epoch` is durable. Thread: any. Nearly all calls only load
/// one word, which changes once per epoch.
inline void await_epoch(EpochBlock& epochs, uint64_t epoch) {
  DCHECK(epoch <= kMaxEpoch);
  // Relaxed: if the load misses a raise, the call repeats it.
  if (epochs.awaited.load(std::memory_order_relaxed) >= epoch) [[likely]]
    return;
  raise_shared(epochs.awaited, epoch);
}

/// Asks the clock to end the current epoch early, if a client waits for it and all workers of the
/// cluster are idle. Wakes the clock at most once per epoch. Thread: a worker that is idle.
void request_epoch_end(const ClusterView& view);

/// A worker is idle while this object exists, until it gets a task. The worker calls
/// request_epoch_end afterwards. Thread: the worker's, except for `record_task`.
class IdleWorker {
 public:
  /// REQUIRES: the worker has no task and holds no page reference; the segment outlives this
  /// object.
  explicit IdleWorker(WorkerSlot& slot) : slot_(slot) {
    DCHECK(slot_.in_commit_epoch.load(std::memory_order_relaxed) == 0);
    // seq_cst: see request_epoch_end.
    slot_.is_idle.store(1, std::memory_order_seq_cst);
  }
  IdleWorker(const IdleWorker&) = delete;
  IdleWorker& operator=(const IdleWorker&) = delete;
  // Relaxed: a worker that got a task is marked already.
  ~IdleWorker() { slot_.is_idle.store(0, std::memory_order_relaxed); }

  /// The worker has got a task, and wakes up soon. Thread: the one that gives the task, under the
  /// mutex of the worker's tasks. It is a write to a line of another processor, once for each time
  /// that the worker wakes up, which takes a system call anyway.
  // seq_cst: a worker that becomes idle later sees that this one is not.
  void record_task() const { slot_.is_idle.store(0, std::memory_order_seq_cst); }

 private:
  WorkerSlot& slot_;
};

}  // namespace atolldb
