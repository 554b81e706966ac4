// Early locks of hot records: what they hold back, when they end, and which records they are for.
#include <gtest/gtest.h>

#include "engine/transaction/early_locks.h"
#include "engine/transaction/hot_records.h"
#include "tests/engine/transaction/early_lock_rules.h"
#include "tests/engine/transaction/early_lock_transfers.h"

namespace atolldb::test {
namespace {

TEST(EarlyLocksTest, EndWithTheAttempt) {
  EXPECT_EQ(early_locks_end_with_the_attempt(AttemptEnd::commit), "");
  EXPECT_EQ(early_locks_end_with_the_attempt(AttemptEnd::user_abort), "");
  EXPECT_EQ(early_locks_end_with_the_attempt(AttemptEnd::rollback), "");
  EXPECT_EQ(early_locks_end_with_the_attempt(AttemptEnd::deadline), "");
}

TEST(EarlyLocksTest, DoNotAbortReaders) {
  EarlyStage stage;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::array, 10);
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_TRUE(stage.is_locked_early(x));
  EXPECT_EQ(stage.value_of(Kind::array, 10), 10);
  stage.commit_alone([&](Transaction& b) {
    uint64_t value = 0;
    const Status status = stage.array().get(b, 10, value);
    return status == Status::ok ? stage.array().put(b, 20, value) : status;
  });
  uint64_t value = 0;
  EXPECT_EQ(stage.array().get(a, 10, value), Status::ok);
  EXPECT_EQ(stage.array().put(a, 10, value + 1), Status::ok);
  EXPECT_EQ(a.commit(), Status::ok);
  EXPECT_EQ(stage.value_of(Kind::array, 10), 11);
}

/// A retry of worker a has locked record 10 early and has read it. A writer waits for the lock
/// until the retry has committed.
void expect_writer_waits(Kind kind, bool retry_writes) {
  EarlyStage stage;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  const RecordRef x = stage.plan(kind, 10);
  ASSERT_EQ(a.begin(), Status::ok);
  uint64_t value = 0;
  EXPECT_EQ(stage.table(kind).get(a, 10, value), Status::ok);
  ASSERT_EQ(b.begin(), Status::ok);
  EXPECT_EQ(stage.table(kind).put(b, 10, 77), Status::ok);
  Status second = Status::ok;
  Other writer([&] { second = b.commit(); });
  writer.wait_until([&] { return is_last_waiter(x.record->lock, b.worker()); });
  EXPECT_FALSE(writer.is_done());
  // The name of the waiter replaces that of the early lock.
  EXPECT_FALSE(stage.is_locked_early(x));
  if (retry_writes) {
    EXPECT_EQ(stage.table(kind).put(a, 10, value + 1), Status::ok);
  }
  EXPECT_EQ(a.commit(), Status::ok) << "the early lock did not protect the read";
  writer.join();
  EXPECT_EQ(second, Status::ok);
  EXPECT_EQ(stage.value_of(kind, 10), 77);
}

TEST(EarlyLocksTest, HoldBackWritersUntilTheRetryHasCommitted) {
  expect_writer_waits(Kind::tree, true);
}

/// The verification cannot see the mark of the early lock.
TEST(EarlyLocksTest, KeepTheirReadsWhileAWriterWaits) { expect_writer_waits(Kind::array, false); }

/// A split locks all records of its page, also those that its worker has locked early.
TEST(EarlyLocksTest, DoNotStopASplitOfTheirOwnWorker) {
  EarlyStage stage;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::tree, 10);
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_TRUE(stage.is_locked_early(x));
  Status status = Status::ok;
  for (uint64_t i = 0; i < 300 && status == Status::ok; ++i) {
    status = stage.tree().insert(a, 1000 + i, i);
  }
  EXPECT_EQ(status, Status::ok);
  EXPECT_GT(a.worker().metrics().splits.get(), 0);
  EXPECT_EQ(a.commit(), Status::ok);
  EXPECT_TRUE(x.record->lock.is_unused());
}

/// A plan is for one attempt only.
TEST(EarlyLocksTest, AreNotTakenByATransactionThatCannotBegin) {
  EarlyStage stage;
  Transaction& a = stage.a();
  const RecordRef x = stage.plan(Kind::array, 10);
  EXPECT_EQ(a.begin(a.worker().current_epoch()), Status::deadline_exceeded);
  EXPECT_TRUE(x.record->lock.is_unused());
  EXPECT_EQ(a.worker().early_locks().size(), 0);
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_EQ(a.begin(), Status::invalid_argument);
  EXPECT_TRUE(x.record->lock.is_unused());
  a.rollback(Status::user_abort);
}

/// A commit that fails to lock a record that it has read would fail its verification after a wait.
TEST(EarlyLocksTest, ACommitDoesNotWaitForARecordThatItHasRead) {
  EarlyStage stage;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  uint64_t value = 0;
  RecordRef x;
  ASSERT_EQ(a.begin(), Status::ok);
  ASSERT_EQ(stage.array().find(a, 10, x), Status::ok);
  ASSERT_EQ(stage.array().put(a, 10, value), Status::ok);
  ASSERT_EQ(b.lock(x.record->lock, x.name()), Status::ok);
  EXPECT_EQ(a.commit(), Status::read_conflict);
  b.unlock(x.record->lock);
  EXPECT_TRUE(x.record->lock.is_unused());
}

/// R21: a lock with waiters and without a holder is free. A waiter is no conflict until it has the
/// lock, which it may take after this commit.
TEST(Verification, AcceptsARecordWhoseLockHasOnlyWaiters) {
  for (const bool is_contended : {false, true}) {
    EarlyStage stage;
    Transaction& a = stage.a();
    if (is_contended) {
      // The retry also checks its reads before it locks its writes.
      ASSERT_EQ(a.begin(), Status::ok);
      uint64_t value = 0;
      EXPECT_EQ(stage.array().get(a, 30, value), Status::ok);
      EXPECT_EQ(stage.array().put(a, 20, value), Status::ok);
      stage.put_alone(Kind::array, 30, 100);
      EXPECT_EQ(a.commit(), Status::read_conflict);
    }
    RecordRef x;
    ASSERT_EQ(a.begin(), Status::ok);
    EXPECT_EQ(stage.array().find(a, 10, x), Status::ok);
    EXPECT_EQ(stage.array().put(a, 20, 1), Status::ok);
    McsWord& lock = x.record->lock;
    lock.waiters.store(lock_code(stage.b().worker().id()), std::memory_order_seq_cst);
    EXPECT_FALSE(lock.is_unused());
    EXPECT_EQ(a.commit(), Status::ok);
    lock.waiters.store(0, std::memory_order_seq_cst);
  }
}

/// Two failures in a row make the third attempt lock the record that caused them.
TEST(EarlyLocksTest, AreTakenAfterFailuresOnARecordThatIsWritten) {
  EarlyStage stage;
  stage.a().worker().hot_records().use({.lock_from_failures = 2});
  RecordRef x;
  stage.commit_alone([&](Transaction& txn) { return stage.array().find(txn, 10, x); });
  int attempts = 0;
  const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
    ++attempts;
    EXPECT_EQ(stage.is_locked_early(x), attempts == 3) << "attempt " << attempts;
    uint64_t value = 0;
    Status done = stage.array().get(txn, 10, value);
    if (done == Status::ok) done = stage.array().put(txn, 10, value + 1);
    if (attempts < 3) stage.put_alone(Kind::array, 10, 100);
    return done;
  });
  EXPECT_EQ(status, Status::ok);
  EXPECT_EQ(attempts, 3);
  EXPECT_EQ(stage.value_of(Kind::array, 10), 101);
}

TEST(EarlyLocksTest, AreNotTakenByPlainTransactions) {
  EarlyStage stage;
  stage.a().worker().hot_records().use({.is_on = false, .lock_from_failures = 2});
  int attempts = 0;
  const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
    EXPECT_FALSE(txn.worker().early_locks().holds_any());
    uint64_t value = 0;
    Status done = stage.array().get(txn, 10, value);
    if (done == Status::ok) done = stage.array().put(txn, 10, value + 1);
    if (++attempts < 6) stage.put_alone(Kind::array, 10, 100);
    return done;
  });
  EXPECT_EQ(status, Status::ok);
  EXPECT_EQ(attempts, 6);
  EXPECT_EQ(stage.a().worker().metrics().early_locks.get(), 0);
}

/// A transaction that only reads locks what makes it fail again and again.
TEST(EarlyLocksTest, AreTakenForReadsAfterManyFailures) {
  EarlyStage stage;
  int attempts = 0;
  const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
    uint64_t value = 0;
    const Status done = stage.array().get(txn, 10, value);
    // The writer of this test would wait for an early lock forever, because it runs in the body.
    const bool is_locked = txn.worker().early_locks().holds_any();
    if (++attempts > 100 || is_locked) return done;
    stage.put_alone(Kind::array, 10, 100);
    return done;
  });
  EXPECT_EQ(status, Status::ok);
  EXPECT_EQ(attempts, HotRecords::Policy().lock_from_failures + 1);
  EXPECT_EQ(stage.a().worker().metrics().early_locks.get(), 1);
}

/// The holder of the other lock never unlocks, as if its process died.
TEST(EarlyLocksTest, AreNotWaitedForWithoutLimit) {
  EarlyStage stage;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  const RecordRef x = stage.plan(Kind::array, 10);
  const RecordRef y = stage.plan(Kind::array, 20);
  const RecordRef z = stage.plan(Kind::array, 30);
  ASSERT_EQ(b.lock(y.record->lock, y.name()), Status::ok);
  ASSERT_EQ(a.begin(), Status::ok);
  EXPECT_TRUE(stage.is_locked_early(x));
  EXPECT_FALSE(stage.is_locked_early(y));
  EXPECT_TRUE(stage.is_locked_early(z));
  a.rollback(Status::user_abort);
  EXPECT_TRUE(x.record->lock.is_unused());
  EXPECT_TRUE(y.record->lock.is_locked());
  EXPECT_TRUE(z.record->lock.is_unused());
  b.unlock(y.record->lock);
}

/// The retry would fail its verification, so its commit takes no lock.
TEST(ContendedAttempt, ChecksItsReadsBeforeItLocks) {
  EarlyStage stage;
  Transaction& a = stage.a();
  const WorkerMetrics& metrics = a.worker().metrics();
  const auto locks = [&] { return metrics.local_locks.get() + metrics.remote_locks.get(); };
  const auto attempt = [&](bool is_disturbed) {
    EXPECT_EQ(a.begin(), Status::ok);
    uint64_t value = 0;
    EXPECT_EQ(stage.array().get(a, 20, value), Status::ok);
    EXPECT_EQ(stage.array().put(a, 10, value), Status::ok);
    if (is_disturbed) stage.put_alone(Kind::array, 20, 100);
    return a.commit();
  };
  uint64_t before = locks();
  EXPECT_EQ(attempt(true), Status::read_conflict);
  EXPECT_EQ(locks(), before + 1) << "the first attempt checks nothing before it locks";
  before = locks();
  EXPECT_EQ(attempt(true), Status::read_conflict);
  EXPECT_EQ(locks(), before) << "the retry locked a record although it was bound to fail";
  EXPECT_EQ(attempt(false), Status::ok);
  EXPECT_EQ(stage.value_of(Kind::array, 10), 100);
  before = locks();
  EXPECT_EQ(attempt(true), Status::read_conflict);
  EXPECT_EQ(locks(), before + 1) << "few attempts fail, so only retries check their reads";
}

TEST(EarlyLocksTest, APlanIsInUniversalOrderAndEndsAtItsLimit) {
  EarlyStage stage;
  Transaction& a = stage.a();
  std::vector<RecordRef> refs(EarlyLocks::kMost + 1);
  stage.commit_alone([&](Transaction& txn) {
    Status status = Status::ok;
    for (size_t i = 0; i < refs.size() && status == Status::ok; ++i) {
      status = stage.array().find(txn, i, refs[i]);
    }
    return status;
  });
  a.worker().enter();
  EarlyLocks& locks = a.worker().early_locks();
  for (size_t i = EarlyLocks::kMost; i > 0; --i)
    a.plan_early_lock(refs[i - 1].record, refs[i - 1].name());
  EXPECT_EQ(locks.size(), EarlyLocks::kMost);
  a.plan_early_lock(refs[3].record, refs[3].name());
  EXPECT_EQ(locks.size(), EarlyLocks::kMost) << "a record is planned twice";
  a.plan_early_lock(refs.back().record, refs.back().name());
  EXPECT_EQ(locks.size(), EarlyLocks::kMost) << "the plan is longer than its limit";
  ASSERT_EQ(a.begin(), Status::ok);
  for (size_t i = 0; i < EarlyLocks::kMost; ++i) EXPECT_TRUE(stage.is_locked_early(refs[i])) << i;
  EXPECT_TRUE(refs.back().record->lock.is_unused());
  EXPECT_TRUE(locks.holds_after(refs[EarlyLocks::kMost - 2].name()));
  EXPECT_FALSE(locks.holds_after(refs[EarlyLocks::kMost - 1].name()));
  locks.release_after(refs[4].name());
  for (size_t i = 0; i < EarlyLocks::kMost; ++i)
    EXPECT_EQ(stage.is_locked_early(refs[i]), i <= 4) << i;
  a.rollback(Status::user_abort);
  for (const RecordRef& ref : refs) EXPECT_TRUE(ref.record->lock.is_unused());
}

TEST(EarlyLocksTest, TransfersInAnyOrderEnd) {
  const uint64_t chosen = seed();
  for (const Kind kind : {Kind::array, Kind::tree}) {
    uint64_t taken = 0;
    EXPECT_EQ(transfers_with_early_locks({.kind = kind,
                                          .transfers = rounds(2000, 200'000),
                                          .inserts = kind == Kind::tree,
                                          .seed = chosen},
                                         taken),
              "");
    EXPECT_GT(taken, 0) << "no transfer has locked an account early";
  }
}

TEST(HotRecordsTest, CoolDownWithCommits) {
  HotRecords hot;
  RecordHead record{};
  RecordHead other{};
  EXPECT_FALSE(hot.is_hot(&record, 0));
  hot.record_abort(&record, 10);
  EXPECT_TRUE(hot.is_hot(&record, 10));
  EXPECT_FALSE(hot.is_hot(&other, 10));
  EXPECT_TRUE(hot.is_hot(&record, 20));
  EXPECT_FALSE(hot.is_hot(&record, 1000));
}

TEST(HotRecordsTest, AreLockedAfterFailuresInARow) {
  HotRecords hot;
  hot.use({.lock_from_failures = 3});
  RecordHead record{};
  for (int i = 0; i < 2; ++i) hot.record_abort(&record, 5);
  EXPECT_FALSE(hot.should_lock(5));
  hot.record_abort(&record, 5);
  EXPECT_TRUE(hot.should_lock(5));
  EXPECT_FALSE(hot.should_lock(6)) << "a commit has ended the failures";
  hot.use({.is_on = false, .lock_from_failures = 3});
  EXPECT_FALSE(hot.should_lock(5));
}

TEST(HotRecordsTest, MakeRetriesCheckTheirReadsAndAllAttemptsIfManyFail) {
  HotRecords hot;
  RecordHead record{};
  EXPECT_FALSE(hot.should_check(5));
  hot.record_abort(&record, 5);
  EXPECT_TRUE(hot.should_check(5)) << "the next attempt is a retry";
  EXPECT_TRUE(hot.has_failed(5));
  EXPECT_FALSE(hot.should_check(6));
  EXPECT_FALSE(hot.has_failed(6));
  uint64_t commits = 6;
  for (int i = 0; i < 200; ++i) hot.record_abort(&record, ++commits);
  EXPECT_TRUE(hot.should_check(++commits)) << "one abort for each commit";
  for (int i = 0; i < 200; ++i) hot.record_abort(&record, commits += 20);
  EXPECT_FALSE(hot.should_check(++commits)) << "one abort for 20 commits";
  hot.use({.is_on = false});
  EXPECT_FALSE(hot.should_check(commits));
}

/// A later record gets the place of an earlier one, once that has cooled down.
TEST(HotRecordsTest, AreOneForEachPlaceOfTheTable) {
  HotRecords hot;
  std::vector<RecordHead> records(2000);
  for (RecordHead& record : records) {
    for (int i = 0; i < 8; ++i) hot.record_abort(&record, 1);
  }
  const auto is_hot = [&](const RecordHead& record) { return hot.is_hot(&record, 1); };
  const auto count = std::ranges::count_if(records, is_hot);
  EXPECT_GT(count, 200);
  EXPECT_LE(count, 256);
}

}  // namespace
}  // namespace atolldb::test
