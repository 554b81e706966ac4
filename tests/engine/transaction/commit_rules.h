// Rules of the commit, each as a fixed interleaving with steps in the middle of a commit (R15-R25).
// A body returns an error text, or an empty text if all is right. Needs the engine with sync points
// (`ATOLL_MUTANTS`).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "engine/sequential/sequential.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/transaction/anomaly_stage.h"
#include "tests/engine/transaction/crossing_locks.h"

namespace atolldb::test {

/// Transaction b reads the record that a is about to overwrite, and overwrites the record that a
/// has read. This happens between a's verification and its writes, so only a's locks stop b.
/// Transaction a runs on worker 0 of node 0 (R25).
inline std::string write_skew_amid_a_commit() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
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
  problem.expect(stage.array().get(a, 20, value), Status::ok, "a reads y");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "a writes x");
  problem.expect(a.commit(), Status::ok, "first commit");
  problem.expect(second, Status::read_conflict, "commit of b amid that of a");
  return problem.text();
}

/// R22: after a failed commit, its records are unlocked and its epoch may close.
inline std::string a_failed_commit_holds_nothing() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().find(a, 10, ref), Status::ok, "read");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
  problem.expect(stage.array().put(a, 20, 1), Status::ok, "write");
  stage.put_alone(Kind::array, 10, 2);
  problem.expect(a.commit(), Status::read_conflict, "commit over an unseen write");
  problem.expect(ref.record->lock.is_unused(), "the record is still locked");
  problem.expect(a.worker().slot().in_commit_epoch.load(std::memory_order_relaxed) == 0,
                 "the in-commit epoch is still set");
  return problem.text();
}

/// R22: a commit takes locks in universal order, and not in that of the writes. The words of the
/// locks name their holder.
inline std::string locks_are_taken_in_universal_order() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  std::vector<RecordRef> refs(3);
  stage.commit_alone([&](Transaction& txn) {
    Status status = Status::ok;
    for (uint32_t i = 0; i < refs.size() && status == Status::ok; ++i) {
      status = stage.array().find(txn, 10 + 10 * i, refs[i]);
    }
    return status;
  });
  uint32_t held_before = 0;
  const AtSyncPoints at_points([&](SyncPoint reached) {
    if (reached != SyncPoint::locking_write) return;
    for (uint32_t i = 0; i < refs.size(); ++i) {
      const bool is_held = a.worker().holds(refs[i].record->lock);
      problem.expect(is_held == (i < held_before), "locked out of universal order");
    }
    ++held_before;
  });
  problem.expect(a.begin(), Status::ok, "begin");
  for (const uint64_t key : {30u, 10u, 20u}) {
    problem.expect(stage.array().put(a, key, 1), Status::ok, "write");
  }
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(held_before == refs.size(), "not all records were locked");
  return problem.text();
}

/// R22: worker b holds x, and the commit of worker a waits for it. The wait block of a names x.
inline std::string a_wait_names_its_lock() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  const WaitBlock& block = stage.cluster().view().lock_space.block(a.worker().id());
  const auto name = [&] { return UniversalName(block.lock_name.load(std::memory_order_relaxed)); };
  RecordRef x;
  stage.commit_alone([&](Transaction& txn) { return stage.array().find(txn, 10, x); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write x");
  problem.expect(b.lock(x.record->lock, x.name()), Status::ok, "b locks x");
  Status status = Status::ok;
  Other committer([&] { status = a.commit(); });
  committer.wait_until([&] { return is_last_waiter(x.record->lock, a.worker()); });
  problem.expect(name() == x.name(), "a worker waits, and its block does not name the lock");
  b.unlock(x.record->lock);
  committer.join();
  problem.expect(status, Status::ok, "commit");
  problem.expect(name() == UniversalName(), "the block names a lock after the wait");
  return problem.text();
}

/// R22: worker b holds x and wants y. Worker a wants both, y first. Worker a must hold nothing
/// while it waits for x.
inline std::string crossing_writers_do_not_wait_for_each_other() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  RecordRef x;
  RecordRef y;
  stage.commit_alone([&](Transaction& txn) {
    const Status status = stage.array().find(txn, 10, x);
    return status == Status::ok ? stage.array().find(txn, 20, y) : status;
  });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 20, 1), Status::ok, "write y");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write x");
  expect_no_crossing(problem, a, b, x, y);
  return problem.text();
}

/// A writer has passed its verification before transaction a's commit takes its locks. That commit
/// loads the lock word and then the VID. In between, the writer stores its VID and unlocks.
inline std::string a_writer_ends_amid_a_verification() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  McsLocker& b = stage.b().worker().locker();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().find(a, 10, ref), Status::ok, "read");
  problem.expect(b.lock(ref.record->lock, ref.name()), Status::ok, "foreign lock");
  const Vid before = ref.record->load_acquire();
  const AtFirst at_point(SyncPoint::verifying_read, [&] {
    ref.record->vid.store(Vid::make(before.epoch(), before.ordinal() + 1).word(),
                          std::memory_order_release);
    b.unlock(ref.record->lock);
  });
  problem.expect(a.commit(), Status::read_conflict, "commit of a read that was overwritten");
  problem.expect(at_point.was_reached(), "nothing was verified");
  return problem.text();
}

/// R16: the ordinals of the epoch are used up for a key, so its next commit is in the next epoch.
inline std::string used_up_ordinals_end_the_epoch_for_a_key() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().find(a, 20, ref), Status::ok, "find");
  a.rollback(Status::user_abort);
  const uint64_t epoch = a.worker().current_epoch();
  const Vid last = Vid::make(epoch, Vid::kMaxOrdinal);
  ref.record->vid.store(last.word(), std::memory_order_release);
  const AtFirst at_point(SyncPoint::awaiting_epoch, [&] {
    problem.expect(ref.record->lock.is_unused(), "waits for an epoch with locks held");
    stage.ticks(1);
  });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 20, 4), Status::ok, "blind write");
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(ref.record->load_acquire().version() > last.version(), "the VID did not grow");
  problem.expect(at_point.was_reached(), "did not wait for the next epoch");
  return problem.text();
}

/// R21: epochs pass at a sync point of a commit. The commit must not be in an epoch that closed
/// then.
inline std::string no_commit_enters_a_closed_epoch(SyncPoint where) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t closed = 0;
  const AtFirst at_point(where, [&] {
    stage.ticks(3);
    closed = stage.cluster().view().control->epochs.durable.load(std::memory_order_acquire);
  });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(at_point.was_reached(), "the sync point was not reached");
  problem.expect(a.last_vid().epoch() > closed, "a commit in an epoch that was closed before it");
  return problem.text();
}

/// R20: every engine call checks the deadline.
inline std::string every_call_fails_from_the_deadline_on() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  const Sequential heap(stage.cluster().create("heap", StorageType::sequential));
  const MasterTree tree = stage.tree().tree();
  const Array array(stage.cluster().create("other", StorageType::array, 8, Stage::kKeys));
  uint64_t value = 0;
  const Bytes bytes = bytes_view(&value, sizeof(value));
  const auto key = ordered_key(10);
  const auto fresh = ordered_key(11);
  const Bytes keys[] = {fresh};
  const Bytes payloads[] = {bytes};
  const uint64_t indexes[] = {10};
  RecordRef in_array;
  RecordRef in_tree;
  RecordRef found[1];
  Status results[1];
  uint32_t length = 0;
  problem.expect(a.begin(a.worker().current_epoch() + 1), Status::ok, "begin");
  problem.expect(stage.array().find(a, 10, in_array), Status::ok, "find");
  problem.expect(stage.tree().find(a, 10, in_tree), Status::ok, "find");
  const Array old_array = Array(stage.cluster().view().control->storage(in_array.storage_id));
  MasterTreeCursor cursor(tree, a, {}, true);
  ArrayCursor array_cursor(old_array, a, 0, 10, true);
  SequentialCursor heap_cursor(heap, a);
  problem.expect(cursor.next(), Status::ok, "first record");
  stage.ticks(1);
  int number = 0;
  const auto late = [&](Status status) {
    problem.expect(status, Status::deadline_exceeded, "call " + std::to_string(++number));
  };
  late(old_array.get(a, 10, &value));
  late(old_array.get(a, in_array, 0, 8, &value));
  late(old_array.get_for_update(a, 10, 0, 8, &value, in_array));
  late(old_array.find_many(a, indexes, found));
  late(old_array.get_many(a, indexes, &value));
  late(old_array.update(a, 10, 0, 8, &value));
  late(old_array.update(a, in_array, 10, 0, 8, &value));
  late(old_array.increment(a, 10, 0, IncrementType::u64, &value));
  late(array_cursor.next(value, &value));
  late(array.update(a, 10, 0, 8, &value));
  late(tree.get(a, key, &value, 8, length));
  late(tree.get_range(a, key, 0, 8, &value));
  late(tree.get_for_update(a, key, &value, 8, length, in_tree));
  late(tree.get_many(a, keys, &value, 8, results));
  late(tree.insert(a, fresh, bytes));
  late(tree.insert_many(a, keys, payloads));
  late(tree.upsert(a, key, bytes));
  late(tree.update(a, key, bytes));
  late(tree.update_range(a, key, 0, bytes));
  late(tree.update_range(a, in_tree, key, 0, bytes));
  late(tree.increment(a, key, 0, IncrementType::u64, &value));
  late(tree.erase(a, key));
  late(tree.erase(a, in_tree, key));
  late(cursor.get(&value, 8));
  late(cursor.next());
  late(heap.append(a, bytes));
  late(heap_cursor.next());
  a.rollback(Status::deadline_exceeded);
  return problem.text();
}

/// R19: a read-only transaction changes no shared byte except its own begin epoch.
inline std::string read_only_transactions_write_nothing() {
  Stage stage({.pool_bytes = uint64_t{2} << 20, .clock = false});
  Problem problem;
  Transaction& a = stage.a();
  const ClusterView& view = stage.cluster().view();
  const auto everything = [&] {
    std::string bytes(reinterpret_cast<const char*>(view.control), sizeof(ControlSegment));
    for (uint32_t node = 0; node < view.node_count; ++node) {
      const NodeShared& shared = *view.shared[node];
      const uint64_t size = shared.return_rings_offset + view.node_count * sizeof(ReturnRing);
      bytes.append(reinterpret_cast<const char*>(&shared), size);
      bytes.append(reinterpret_cast<const char*>(view.pool[node]), uint64_t{2} << 20);
    }
    return bytes;
  };
  const auto read = [&] {
    uint64_t value = 0;
    problem.expect(a.begin(), Status::ok, "begin");
    problem.expect(stage.array().get(a, 10, value), Status::ok, "read of an array");
    problem.expect(stage.tree().get(a, 10, value), Status::ok, "read of a tree");
    problem.expect(stage.tree().get(a, 11, value), Status::not_found, "look-up");
    problem.expect(stage.tree().scan(a, 0, 100, true, value), Status::ok, "scan");
    problem.expect(a.commit(), Status::ok, "commit");
  };
  read();
  stage.ticks(1);
  const std::string before = everything();
  read();
  // A worker writes its begin epoch once per epoch. Restore the old value, so that nothing differs.
  const uint64_t epoch = a.worker().slot().begin_epoch.load(std::memory_order_relaxed);
  problem.expect(epoch == a.worker().current_epoch(), "the begin epoch was not published");
  a.worker().slot().begin_epoch.store(epoch - 1, std::memory_order_relaxed);
  problem.expect(everything() == before, "a read-only transaction wrote to shared memory");
  return problem.text();
}

/// R15, R19: a scan passes the tombstone of an erased record. The answer of the transaction depends
/// on that erase.
inline std::string an_answer_depends_on_skipped_tombstones() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  stage.ticks(3);
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, true, count), Status::ok, "scan");
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(a.commit_epoch() == stage.b().last_vid().epoch(),
                 "the answer does not depend on the erase");
  return problem.text();
}

/// R19: a reservation is no commit, so the answer waits for nothing to become durable.
inline std::string an_answer_does_not_depend_on_reservations() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t count = 0;
  stage.ticks(3);
  problem.expect(b.begin(), Status::ok, "begin of the insert");
  problem.expect(stage.tree().insert(b, 33, 1), Status::ok, "insert");
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, true, count), Status::ok, "scan");
  problem.expect(a.commit(), Status::ok, "commit");
  problem.expect(a.commit_epoch() < a.worker().current_epoch(),
                 "the answer waits for an insert that has not committed");
  b.rollback(Status::user_abort);
  return problem.text();
}

/// R33: increments do not conflict, and none is lost.
inline std::string increments_sum_up(Kind kind) {
  Stage stage;
  Problem problem;
  for (Transaction* txn : {&stage.a(), &stage.b()}) {
    problem.expect(txn->begin(), Status::ok, "begin");
    problem.expect(stage.table(kind).add(*txn, 10, 100), Status::ok, "increment");
  }
  problem.expect(stage.a().commit(), Status::ok, "first commit");
  problem.expect(stage.b().commit(), Status::ok, "second commit");
  problem.expect(stage.value_of(kind, 10) == 210, "an increment is lost");
  return problem.text();
}

/// R33: an increment has no read-set entry. The commit itself must detect that the record was
/// erased.
inline std::string an_increment_does_not_revive_a_tombstone() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().add(a, 10, 5), Status::ok, "increment");
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 10); });
  problem.expect(a.commit(), Status::write_conflict, "increment of an erased record");
  return problem.text();
}

/// R23: verification holds locks, so it does not wait for a worker that is moving a record. The
/// mover has marked the VID, or the VID and the page word, but not yet the record's new place.
inline std::string verification_waits_for_no_mover(bool page_says_moved) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().find(a, 10, ref), Status::ok, "read");
  problem.expect(stage.array().put(a, 10, 1), Status::ok, "write");
  PageHeader* page = page_of(ref.record);
  const Vid vid = ref.record->load_acquire();
  const PageVersion version = page->version();
  ref.record->vid.store(vid.with(Vid::kMoved).word(), std::memory_order_release);
  if (page_says_moved) page->set_version(version.with_status(PageVersion::kMoved));
  const auto put_back = [&] {
    ref.record->vid.store(vid.word(), std::memory_order_release);
    page->set_version(version);
  };
  int looks = 0;
  {
    const AtSyncPoints at_points([&](SyncPoint reached) {
      if (reached != SyncPoint::verifying_read && reached != SyncPoint::tracking) return;
      if (++looks == 1000) put_back();
    });
    problem.expect(a.commit(), Status::read_conflict, "commit of a read that is being moved");
  }
  problem.expect(looks < 1000, "waited for the mover with locks held");
  put_back();
  return problem.text();
}

}  // namespace atolldb::test
