#include "shared/memory/epoch_end.h"

#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Returns whether no worker of the cluster has a task.
bool all_workers_are_idle(const ClusterView& view) {
  for (uint32_t node = 0; node < view.node_count; ++node) {
    NodeShared& shared = *view.shared[node];
    for (uint32_t worker = 0; worker < shared.worker_count; ++worker) {
      // seq_cst: see request_epoch_end.
      if (shared.slot(worker).is_idle.load(std::memory_order_seq_cst) == 0) return false;
    }
  }
  return true;
}

}  // namespace

void request_epoch_end(const ClusterView& view) {
  CHECK(view.control != nullptr && view.node_count != 0);
  EpochBlock& epochs = view.control->epochs;
  // seq_cst, as are the raise of `awaited` and the stores of `is_idle`. The last of several workers
  // that become idle then sees the raises of all of them, and that all are idle. So it makes the
  // request that the others did not make. A missed request would only cost time.
  const uint64_t current = epochs.current.load(std::memory_order_seq_cst);
  const uint64_t awaited = epochs.awaited.load(std::memory_order_seq_cst);
  // Without a log there are no markers, and a closed epoch counts as durable.
  const bool is_under_way = awaited <= epochs.marker_wanted.load(std::memory_order_relaxed) ||
                            awaited <= epochs.durable.load(std::memory_order_relaxed);
  if (is_under_way || epochs.end_requested.load(std::memory_order_relaxed) >= current) return;
  if (!all_workers_are_idle(view) || !raise_shared(epochs.end_requested, current)) return;
  // Release: a clock that sees the changed signal sees the request.
  epochs.end_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.end_signal, 1);
}

}  // namespace atolldb
