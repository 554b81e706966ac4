// Rules about a transaction's own work: it sees its own writes and does not abort itself (R13,
// R14). Also the effects of commits (R15, R16, R20). A body returns an error text, or an empty text
// if all is right.
#pragma once

#include <thread>

#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// R14: look-ups see own inserts, updates, increments and erases.
inline std::string look_ups_see_own_writes() {
  Stage stage;
  Problem problem;
  const Table& tree = stage.tree();
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 3, 5), Status::ok, "array write");
  problem.expect(stage.array().get(a, 3, value), Status::ok, "array read");
  problem.expect(value == 5, "own array write not seen");
  problem.expect(stage.array().add(a, 3, 4), Status::ok, "array increment");
  problem.expect(stage.array().get(a, 3, value), Status::ok, "array read");
  problem.expect(value == 9, "own increment not seen");
  problem.expect(tree.insert(a, 33, 1), Status::ok, "insert");
  problem.expect(tree.get(a, 33, value), Status::ok, "read of the own insert");
  problem.expect(value == 1, "own insert has another value");
  problem.expect(tree.insert(a, 33, 2), Status::already_exists, "second insert");
  problem.expect(tree.put(a, 30, 7), Status::ok, "overwrite");
  problem.expect(tree.get(a, 30, value), Status::ok, "read of the own overwrite");
  problem.expect(value == 7, "own overwrite not seen");
  problem.expect(tree.erase(a, 30), Status::ok, "erase");
  problem.expect(tree.get(a, 30, value), Status::not_found, "read of the own erase");
  problem.expect(tree.erase(a, 30), Status::not_found, "second erase");
  problem.expect(tree.insert(a, 30, 8), Status::ok, "insert after the own erase");
  problem.expect(finish(a, tree.get(a, 30, value)), Status::ok, "commit");
  problem.expect(value == 8 && stage.value_of(Kind::tree, 30) == 8, "not what was committed");
  problem.expect(stage.value_of(Kind::array, 3) == 9, "the increment is not in the record");
  return problem.text();
}

/// R14: cursors see own writes, also inserts and erases made while the cursor is open.
inline std::string cursors_see_own_writes(bool forward) {
  Stage stage;
  Problem problem;
  const Table& tree = stage.tree();
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.insert(a, 22, 1), Status::ok, "insert");
  problem.expect(tree.erase(a, 30), Status::ok, "erase");
  problem.expect(tree.scan(a, 15, 45, forward, count), Status::ok, "scan");
  problem.expect(count == 3, "own insert and erase: the scan found " + std::to_string(count));

  MasterTreeCursor cursor(tree.tree(), a, {}, forward);
  problem.expect(cursor.next(), Status::ok, "first record");
  const uint64_t ahead = forward ? 55 : 45;
  const uint64_t gone = forward ? 60 : 40;
  problem.expect(tree.insert(a, ahead, 1), Status::ok, "insert ahead of the cursor");
  problem.expect(tree.erase(a, gone), Status::ok, "erase ahead of the cursor");
  count = 1;
  bool met = false;
  while (cursor.next() == Status::ok) {
    ++count;
    const auto key = ordered_key(ahead);
    met = met || std::memcmp(cursor.key().data(), key.data(), key.size()) == 0;
  }
  problem.expect(met, "the cursor missed an insert ahead of it");
  // The tree has ten keys at first. The transaction has inserted 22 and one key ahead of the
  // cursor. It has erased 30 and one other key ahead of the cursor.
  problem.expect(count == 10, "the cursor returned " + std::to_string(count) + " records");
  problem.expect(a.commit(), Status::ok, "commit");
  return problem.text();
}

/// R13: the revival of a tombstone changes its VID and the page word. The reviving transaction
/// depends on both, and must still commit.
inline std::string tombstone_then_own_insert_commits() {
  Stage stage;
  Problem problem;
  const Table& tree = stage.tree();
  Transaction& a = stage.a();
  uint64_t value = 0;
  uint64_t count = 0;
  stage.commit_alone([&](Transaction& b) { return tree.erase(b, 30); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.scan(a, 0, 1000, true, count), Status::ok, "scan");
  problem.expect(tree.get(a, 30, value), Status::not_found, "look-up");
  problem.expect(tree.insert(a, 30, 7), Status::ok, "insert");
  problem.expect(tree.scan(a, 25, 35, true, count), Status::ok, "scan");
  problem.expect(count == 1, "the own insert is not seen");
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(stage.value_of(Kind::tree, 30) == 7, "the record was not revived");
  return problem.text();
}

/// R13: a transaction that looks up a missing key and inserts it does not abort itself, with or
/// without a scan before the look-up. This also holds if the inserts split the page that was read.
inline std::string look_up_then_insert_commits(uint64_t inserts) {
  Stage stage;
  Problem problem;
  const Table& tree = stage.tree();
  Transaction& a = stage.a();
  uint64_t value = 0;
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.scan(a, 0, 1000, true, count), Status::ok, "scan");
  Status status = Status::ok;
  for (uint64_t i = 0; i < inserts && !is_abort(status); ++i) {
    // Inserts at every position of the pages, not only at the end.
    const uint64_t key = 100 + (i * 7919) % 4096;
    status = tree.get(a, key, value);
    problem.expect(status, Status::not_found, "look-up");
    status = tree.insert(a, key, i);
    problem.expect(status, Status::ok, "insert");
  }
  problem.expect(finish(a, status), Status::ok, "commit");
  stage.commit_alone([&](Transaction& b) { return tree.scan(b, 100, 5000, false, count); });
  problem.expect(count == inserts, "not all inserts are there");
  const bool split = stage.cluster().metrics(0, 0).splits.get() != 0;
  problem.expect(split == (inserts > 200), "the number of splits is not what this test is for");
  return problem.text();
}

/// R15: VIDs grow per key, also if the writer has read nothing and its epoch is older.
inline std::string vids_grow_per_key(Kind kind) {
  Stage stage;
  Problem problem;
  for (int i = 0; i < 5; ++i) stage.put_alone(kind, 10, 1);
  const Vid before = stage.vid_of(kind, 10);
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.table(kind).put(a, 10, 2), Status::ok, "blind write");
  problem.expect(a.commit(), Status::ok, "commit");
  const Vid after = stage.vid_of(kind, 10);
  problem.expect(after.version() > before.version(), "the VID did not grow");
  return problem.text();
}

/// R16: a commit that finds the ordinals of the epoch used up commits in the next epoch.
inline std::string used_up_ordinals_wait_for_the_next_epoch() {
  Stage stage;
  Problem problem;
  RecordRef ref;
  stage.commit_alone([&](Transaction& b) { return stage.array().find(b, 10, ref); });
  const uint64_t epoch = stage.a().worker().current_epoch();
  ref.record->vid.store(Vid::make(epoch, Vid::kMaxOrdinal).word(), std::memory_order_release);
  Status status = Status::procedure_failed;
  std::atomic<bool> done{false};
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 10, 4), Status::ok, "write");
  WorkerMetrics& metrics = a.worker().metrics();
  const uint64_t locks = metrics.remote_locks.get();
  std::thread writer([&] {
    status = a.commit();
    done.store(true, std::memory_order_release);
  });
  // The clock stands still until the commit has begun, so that the commit finds the ordinals of
  // this epoch used up.
  while (metrics.remote_locks.get() == locks) std::this_thread::yield();
  while (!done.load(std::memory_order_acquire)) {
    stage.ticks(1);
    std::this_thread::yield();
  }
  writer.join();
  problem.expect(status, Status::ok, "commit");
  const Vid after = ref.record->load_acquire();
  problem.expect(after.epoch() > epoch, "the commit is not in a later epoch");
  problem.expect(after.ordinal() != 0, "ordinal 0 was used for a commit");
  problem.expect(ref.record->lock.is_unused(), "the record is still locked");
  return problem.text();
}

/// R20: the reads that led to a user abort must have been consistent.
inline std::string user_abort_after_a_foreign_write() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().get(a, 10, value), Status::ok, "read");
  stage.put_alone(Kind::array, 10, 1);
  problem.expect(a.commit_user_abort(), Status::read_conflict, "abort on a stale read");
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 10, 77), Status::ok, "write");
  problem.expect(a.commit_user_abort(), Status::ok, "abort on nothing stale");
  problem.expect(stage.value_of(Kind::array, 10) == 1, "an aborted write is in the record");
  return problem.text();
}

/// R20: a user abort locks no record, not even the records of its planned writes. A lock on a
/// record that it has read belongs to another worker, which may be in the middle of its writes.
inline std::string user_abort_of_a_record_locked_by_another() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().find(a, 10, ref), Status::ok, "read");
  problem.expect(stage.array().put(a, 10, 77), Status::ok, "planned write");
  McsLocker& other = stage.b().worker().locker();
  problem.expect(other.lock(ref.record->lock, ref.name()), Status::ok, "foreign lock");
  problem.expect(a.commit_user_abort(), Status::read_conflict, "abort under a foreign lock");
  other.unlock(ref.record->lock);
  return problem.text();
}

/// R9: a replaced page is not reused while a reader may still access it.
inline std::string replaced_pages_wait_for_their_readers() {
  Stage stage;
  Problem problem;
  const Table tree(Kind::tree, stage.empty_tree("churned"));
  uint64_t next_key = 0;
  // Splits pages of worker a's node and takes new ones, in consecutive epochs.
  const auto churn = [&](uint64_t inserts) {
    const Status status = stage.cluster().worker(0).run([&](Transaction& txn) {
      Status one = Status::ok;
      for (uint64_t i = 0; i < inserts && one == Status::ok; ++i) {
        one = tree.insert(txn, next_key + i, i);
      }
      return one;
    });
    problem.expect(status, Status::ok, "inserts");
    next_key += inserts;
    stage.ticks(2);
  };
  churn(1);
  Transaction& b = stage.b();
  RecordRef ref;
  problem.expect(b.begin(), Status::ok, "begin");
  problem.expect(tree.find(b, 0, ref), Status::ok, "read");
  const PageHeader* page = page_of(ref.record);
  const uint64_t self = page->self;
  for (int i = 0; i < 20; ++i) churn(400);
  problem.expect(page->version().is_moved() && page->self == self,
                 "the page was recycled under a reader");
  b.rollback(Status::user_abort);
  b.worker().leave();
  // The first empty transaction makes worker a's own begin epoch newer than its last splits. The
  // second one recycles the pages.
  for (int i = 0; i < 2; ++i) {
    stage.ticks(2);
    problem.expect(stage.cluster().worker(0).run([](Transaction&) { return Status::ok; }),
                   Status::ok, "empty transaction");
  }
  problem.expect(stage.a().worker().pages().retired_count() == 0,
                 "pages are kept after their last reader has gone");
  return problem.text();
}

}  // namespace atolldb::test
