// Runs a body as one transaction: begin, body, commit, and retries after conflicts.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "engine/transaction/transaction.h"
#include "shared/base/check.h"
#include "shared/base/status.h"

namespace atolldb {

/// Exponential back-off with jitter between attempts. Has its own random state.
class Backoff {
 public:
  explicit Backoff(uint64_t seed) : state_(seed | 1) {}
  /// Waits before attempt number `attempt` (1 is the first retry): spins. From the fourth attempt
  /// on it yields the processor first.
  void wait(uint32_t attempt);

 private:
  uint64_t state_;
};

/// Wait for free pages. The transaction has ended its attempt and holds nothing until a snapshot
/// job or a hint of this worker has freed pages (R23), or the snapshot cache has returned some
/// (R81).
class PageWait {
 public:
  /// Maximum duration of all waits of one transaction together. After that the transaction ends
  /// with volatile_pool_exhausted.
  static constexpr std::chrono::seconds kPatience{20};

  /// Returns true if there are free pages, so another attempt may succeed. Returns false if no
  /// pages will come (no_pages_come), if the cluster has failed, or if `deadline_epoch` or
  /// kPatience has passed. REQUIRES: no transaction is active.
  bool wait(WorkerContext& worker, uint64_t deadline_epoch);

 private:
  bool has_ended(const WorkerContext& worker, uint64_t deadline_epoch) const;
  bool no_pages_come(WorkerContext& worker) const;

  uint64_t end_ns_ = 0;  // when kPatience ends, as now_ns(); 0: has not waited yet
  uint32_t unproductive_snapshots_ = 0;
};

/// Sets the function that a worker calls while it waits (WorkerContext::set_wait_hook), for the
/// lifetime of this object.
class WaitHook {
 public:
  WaitHook(WorkerContext& worker, std::function<void()> hook) : worker_(worker) {
    worker_.set_wait_hook(std::move(hook));
  }
  WaitHook(const WaitHook&) = delete;
  WaitHook& operator=(const WaitHook&) = delete;
  ~WaitHook() { worker_.set_wait_hook(nullptr); }

 private:
  WorkerContext& worker_;
};

/// Subtracts the pages that the worker has used from its node's page budget. If the budget is
/// negative, waits until the coordinator has added enough to it, at most max_delay_at_once. The
/// next transactions of the worker wait for the rest, until the budget is not negative, or the
/// waits have taken max_page_delay together. So workers together take pages no faster than the
/// limit. REQUIRES: no transaction is active, and the worker owes pages.
void pay_for_pages(WorkerContext& worker, uint64_t deadline_epoch);

/// Wait for the first snapshot, for a transaction that asks for the newest one. Requests a
/// snapshot. The transaction holds nothing meanwhile (R62, R23).
class SnapshotWait {
 public:
  /// Returns true if there is a snapshot now. Returns false if this cluster takes none, if an
  /// attempt since the request has failed, if the cluster has failed, or if `deadline_epoch` has
  /// passed. REQUIRES: no transaction is active.
  bool wait(WorkerContext& worker, uint64_t deadline_epoch);
};

/// A worker's place in its node's RunGate, for one attempt of a transaction. Without a gate, does
/// nothing.
class InGate {
 public:
  /// Waits for a place. REQUIRES: no transaction is active.
  explicit InGate(WorkerContext& worker) : worker_(&worker) { worker.enter_gate(); }
  InGate(const InGate&) = delete;
  InGate& operator=(const InGate&) = delete;
  /// Also leaves if the body has thrown.
  ~InGate() { leave(); }
  void leave() { worker_->leave_gate(); }

 private:
  WorkerContext* worker_;
};

/// Executes a bounded number of hints that are due (compaction, merging). `run` calls this function
/// between transactions. REQUIRES: the worker has no active transaction.
void run_hints(WorkerContext& worker);

/// Runs `body(transaction)` and commits if the body returns ok. Returns ok only after the commit.
/// If the body returns user_abort, procedure_failed or a result such as not_found, verifies the
/// reads (R20), rolls back and returns that status. The body must return abort statuses of engine
/// calls unchanged. After conflicts, retries until `deadline_epoch`. Also waits for pages that
/// snapshots free, and for the first snapshot.
template <typename Body>
Status run(Transaction& transaction, Backoff& backoff, uint64_t deadline_epoch, Body&& body,
           TransactionMode mode = {}) {
  PageWait page_wait;
  bool may_wait_for_snapshot = true;
  for (uint32_t attempt = 0;; ++attempt) {
    if (attempt != 0) backoff.wait(attempt);
    if (transaction.worker().pages().owes_pages()) [[unlikely]] {
      pay_for_pages(transaction.worker(), deadline_epoch);
    }
    InGate in_gate(transaction.worker());
    Status status = transaction.begin(deadline_epoch, mode);
    if (status == Status::snapshot_not_found && mode.snapshot == 0) [[unlikely]] {
      in_gate.leave();
      // The loop waits at most once: after that there is always a published snapshot.
      if (!std::exchange(may_wait_for_snapshot, false)) return status;
      WorkerContext& own = transaction.worker();
      // If the cluster has failed, the next `begin` returns cluster_failed.
      if (SnapshotWait().wait(own, deadline_epoch) || own.cluster_failed()) continue;
    }
    if (status != Status::ok) return status;
    status = body(transaction);
    if (status == Status::ok) {
      status = transaction.commit();
    } else if (status == Status::user_abort || status == Status::procedure_failed ||
               !is_abort(status)) {
      // The reads that led to the body's decision or failure must verify (R20).
      const Status verified = transaction.commit_user_abort();
      if (verified != Status::ok) status = verified;
    } else {
      transaction.rollback(status);
    }
    DCHECK(!transaction.is_active());
    WorkerContext& worker = transaction.worker();
    if (worker.hints().is_due(worker.current_epoch())) run_hints(worker);
    in_gate.leave();
    if (is_retryable(status)) continue;
    const bool is_pool_exhausted = status == Status::volatile_pool_exhausted;
    if (!is_pool_exhausted || !page_wait.wait(worker, deadline_epoch)) return status;
  }
}

}  // namespace atolldb
