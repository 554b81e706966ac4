// Runs a body as one transaction: begin, body, commit, and again after a conflict.
#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "engine/transaction/transaction.h"
#include "shared/status.h"

namespace atolldb {

/// Exponential back-off with jitter between attempts; keeps its own random state.
class Backoff {
 public:
  explicit Backoff(uint64_t seed) : state_(seed | 1) {}
  /// Waits before attempt number `attempt` (1 = first retry): spins, then yields the processor.
  void wait(uint32_t attempt);

 private:
  uint64_t state_;
};

/// What a transaction does that found no free page: it has ended its attempt, and waits where it
/// holds nothing until snapshots have let pages go (R23).
class PageWait {
 public:
  /// A transaction waits so long in all; then it is told that there are no pages.
  static constexpr std::chrono::seconds kPatience{20};

  /// True: there are pages, so another attempt may help. False: nobody lets pages go, or
  /// `deadline_epoch` or the patience is over. REQUIRES: no transaction is active.
  bool wait(WorkerContext& worker, uint64_t deadline_epoch);

 private:
  bool is_in_vain(const WorkerContext& worker, uint64_t deadline_epoch) const;

  uint64_t end_ns_ = 0;  // of the patience; 0: it has not begun
  uint32_t vain_snapshots_ = 0;
};

/// What a transaction does that asks for the newest snapshot when there is none: it has one taken,
/// and waits where it holds nothing (R62, R23).
class SnapshotWait {
 public:
  /// True: there is one by now. False: none is taken here, an attempt since has failed, or
  /// `deadline_epoch` is over. REQUIRES: no transaction is active.
  bool wait(WorkerContext& worker, uint64_t deadline_epoch);
};

/// Between transactions: works off hints (compaction, merging), bounded. Called by `run`.
void run_hints(Transaction& transaction);

/// `body(transaction)` returns ok to commit, user_abort to roll back, any other answer (for
/// example not_found) or procedure_failed to roll back and hand it on; abort statuses from engine
/// calls must be returned as they are. Retries until `deadline_epoch`; waits for pages that
/// snapshots let go, and for the first snapshot. Returns ok only after the commit.
template <typename Body>
Status run(Transaction& transaction, Backoff& backoff, uint64_t deadline_epoch, Body&& body,
           TransactionMode mode = {}) {
  PageWait page_wait;
  bool may_wait_for_snapshot = true;
  for (uint32_t attempt = 0;; ++attempt) {
    if (attempt != 0) backoff.wait(attempt);
    Status status = transaction.begin(deadline_epoch, mode);
    if (status == Status::snapshot_not_found && mode.snapshot == 0) [[unlikely]] {
      // Once: what was published stays, or a later one comes.
      if (!std::exchange(may_wait_for_snapshot, false)) return status;
      WorkerContext& own = transaction.worker();
      // Of a cluster that has failed `begin` tells.
      if (SnapshotWait().wait(own, deadline_epoch) || own.cluster_failed()) continue;
    }
    if (status != Status::ok) return status;
    status = body(transaction);
    if (status == Status::ok) {
      status = transaction.commit();
    } else if (status == Status::user_abort || status == Status::procedure_failed ||
               !is_abort(status)) {
      // What the body decided on, or stumbled over, must have been true (R20).
      const Status verified = transaction.commit_user_abort();
      if (verified != Status::ok) status = verified;
    } else {
      transaction.rollback(status);
    }
    WorkerContext& worker = transaction.worker();
    if (worker.hints().is_due(worker.current_epoch())) run_hints(transaction);
    if (is_retryable(status)) continue;
    const bool lacks_pages = status == Status::volatile_pool_exhausted;
    if (!lacks_pages || !page_wait.wait(worker, deadline_epoch)) return status;
  }
}

}  // namespace atolldb
