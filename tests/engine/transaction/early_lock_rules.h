// Rules of early locks (R104 to R106), each as a fixed interleaving. A body returns an error text,
// or an empty text if all is right.
#pragma once

#include <string>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/engine/transaction/crossing_locks.h"

namespace atolldb::test {

/// A stage whose worker a locks records early.
class EarlyStage : public Stage {
 public:
  /// Makes the next attempt of worker a lock the record early.
  RecordRef plan(Kind kind, uint64_t key) {
    RecordRef ref;
    commit_alone([&](Transaction& txn) { return table(kind).find(txn, key, ref); });
    a().worker().enter();  // the begin epoch protects the record
    a().plan_early_lock(ref.record, ref.name());
    return ref;
  }
  /// Returns true if a worker has locked the record early, and no other worker waits for the lock.
  bool is_locked_early(const RecordRef& ref) { return ref.record->lock.is_early(); }
  /// Releases what worker a holds without the rule.
  void clean_up() {
    a().worker().early_locks().release();
    a().worker().early_locks().discard_plan();
  }
};

/// R104: worker a holds y early, and its commit waits for x, which comes before y. Worker b holds x
/// and wants y.
inline std::string early_locks_do_not_cross() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  RecordRef x;
  stage.commit_alone([&](Transaction& txn) { return stage.array().find(txn, 10, x); });
  const RecordRef y = stage.plan(Kind::array, 20);
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.is_locked_early(y), "the planned lock was not taken");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write x");
  expect_no_crossing(problem, a, b, x, y);
  problem.expect(x.record->lock.is_unused() && y.record->lock.is_unused(), "a lock is left");
  return problem.text();
}

enum class AttemptEnd { commit, user_abort, rollback, deadline };

/// R105: every end of an attempt releases the early locks, those of written records and others.
inline std::string early_locks_end_with_the_attempt(AttemptEnd end) {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::array, 10);
  const RecordRef y = stage.plan(Kind::tree, 20);
  problem.expect(a.begin(a.worker().current_epoch() + 1), Status::ok, "begin");
  problem.expect(stage.is_locked_early(x) && stage.is_locked_early(y),
                 "a planned lock was not taken");
  uint64_t value = 0;
  problem.expect(stage.array().get(a, 10, value), Status::ok, "read x");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write x");
  if (end == AttemptEnd::commit) problem.expect(a.commit(), Status::ok, "commit");
  if (end == AttemptEnd::user_abort) {
    problem.expect(a.commit_user_abort(), Status::ok, "user abort");
  }
  if (end == AttemptEnd::deadline) {
    stage.ticks(1);
    problem.expect(stage.array().get(a, 10, value), Status::deadline_exceeded, "read too late");
    a.rollback(Status::deadline_exceeded);
  }
  a.rollback(Status::read_conflict);  // does nothing after another end
  problem.expect(x.record->lock.is_unused(), "the lock of a written record is left");
  problem.expect(y.record->lock.is_unused(), "the lock of another record is left");
  problem.expect(!a.worker().early_locks().holds_any(), "the worker holds early locks");
  stage.clean_up();
  return problem.text();
}

/// R105: worker a waits for the lock of a page, of which it has locked a record early. The holder
/// of the page may wait for that record.
inline std::string early_locks_end_before_page_locks() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  const RecordRef x = stage.plan(Kind::tree, 10);
  McsWord& page_lock = tree_page(page_of(x.record))->lock;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.is_locked_early(x), "the planned lock was not taken");
  CHECK(b.lock(page_lock, UniversalName()) == Status::ok);
  Status status = Status::ok;
  Other inserter([&] { status = stage.tree().insert(a, 15, 1); });
  inserter.wait_until([&] { return is_last_waiter(page_lock, a.worker()); });
  problem.expect(!inserter.is_done(), "the insert did not wait for the page");
  problem.expect(x.record->lock.is_unused(), "waits for a page with an early lock held");
  b.unlock(page_lock);
  inserter.join();
  problem.expect(status, Status::ok, "insert");
  problem.expect(a.commit(), Status::ok, "commit");
  stage.clean_up();
  return problem.text();
}

/// R105: the begin epoch of the worker ends before the retry. So the page of the planned record may
/// be reused.
inline std::string early_plans_end_with_the_begin_epoch() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::array, 10);
  stage.ticks(1);
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(x.record->lock.is_unused(), "locks a record of an earlier begin epoch");
  a.rollback(Status::user_abort);
  stage.clean_up();
  return problem.text();
}

#ifdef ATOLL_MUTANTS
/// R106: worker a holds x early, and reads y. Worker b reads x and writes y between a's
/// verification and its writes.
inline std::string early_marks_end_before_the_verification() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::array, 10);
  uint64_t value = 0;
  Status second = Status::ok;
  const AtFirst at_point(SyncPoint::verified, [&] {
    Transaction& b = stage.b();
    problem.expect(b.begin(), Status::ok, "begin of b");
    problem.expect(stage.array().get(b, 10, value), Status::ok, "b reads x");
    problem.expect(stage.array().put(b, 20, 1), Status::ok, "b writes y");
    second = b.commit();
  });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.is_locked_early(x), "the planned lock was not taken");
  problem.expect(stage.array().get(a, 20, value), Status::ok, "a reads y");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "a writes x");
  problem.expect(a.commit(), Status::ok, "first commit");
  problem.expect(at_point.was_reached(), "nothing was verified");
  problem.expect(second, Status::read_conflict, "commit of b amid that of a");
  return problem.text();
}

/// R106: worker a verifies its read of x, which a committing writer has locked. The writer stores
/// its VID and unlocks x. Then another transaction locks x early. Worker b takes both parts.
inline std::string an_early_lock_is_taken_amid_a_verification() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  RecordRef x;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().find(a, 10, x), Status::ok, "read");
  McsWord& lock = x.record->lock;
  problem.expect(b.lock(lock, x.name()), Status::ok, "lock of the writer");
  const Vid before = x.record->load_acquire();
  const AtFirst at_point(SyncPoint::verifying_mark, [&] {
    x.record->vid.store(Vid::make(before.epoch(), before.ordinal() + 1).word(),
                        std::memory_order_release);
    b.unlock(lock);
    problem.expect(b.try_lock_early(lock) && lock.is_early(), "x is not locked early");
  });
  problem.expect(a.commit(), Status::read_conflict, "commit of a read that was overwritten");
  problem.expect(at_point.was_reached(), "no mark was verified");
  if (b.holds(lock)) {
    b.end_early(lock);
    b.unlock(lock);
  }
  return problem.text();
}

/// R106: worker a releases its early lock of x. A third worker has seen no waiter before a marked
/// the lock, and now continues its `try_lock` for a commit. Worker b verifies its read of x.
inline std::string early_marks_end_before_their_locks() {
  EarlyStage stage;
  Problem problem;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  const RecordRef x = stage.plan(Kind::array, 10);
  McsWord& lock = x.record->lock;
  const LockCode third = lock_code(static_cast<WorkerId>(b.worker().id() + 1));
  LockCode holder = 0;
  Status status = Status::ok;
  const AtFirst at_point(SyncPoint::unlocking_early, [&] {
    lock.holder.compare_exchange_strong(holder, third, std::memory_order_seq_cst);
    status = b.commit();
  });
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.is_locked_early(x), "the planned lock was not taken");
  problem.expect(b.begin(), Status::ok, "begin of b");
  problem.expect(stage.array().get(b, 10, value), Status::ok, "b reads x");
  a.rollback(Status::user_abort);
  problem.expect(at_point.was_reached(), "no early lock was released");
  problem.expect(status, Status::read_conflict, "commit of b while x has no mark");
  problem.expect(holder == lock_code(a.worker().id()), "the third worker has the lock");
  if (lock.holder.load(std::memory_order_relaxed) == third) lock.clear();
  problem.expect(lock.is_unused(), "a lock is left");
  return problem.text();
}
#endif

}  // namespace atolldb::test
