// The classic anomalies (Adya; Berenson et al.), each as a fixed interleaving of two transactions.
// A body returns an error text, or an empty text if all is right. The anomaly tests expect an empty
// text. The mutant tests expect an empty text with all rules on, and a non-empty text with the rule
// off.
#pragma once

#include <string>

#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// R11: both transactions read and write x. The second must not overwrite a version it has not
/// read.
inline std::string lost_update(Kind kind) {
  Stage stage;
  Problem problem;
  const Table& table = stage.table(kind);
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.get(a, 10, value), Status::ok, "read x");
  stage.commit_alone([&](Transaction& b) {
    uint64_t same = 0;
    CHECK(table.get(b, 10, same) == Status::ok);
    return table.put(b, 10, same + 1);
  });
  problem.expect(table.put(a, 10, value + 1), Status::ok, "write x");
  problem.expect(a.commit(), Status::read_conflict, "commit over an unseen write");
  problem.expect(stage.value_of(kind, 10) == 11, "the first update is gone");
  return problem.text();
}

/// Both transactions read x and y. One writes x, the other writes y.
inline std::string write_skew(Kind kind) {
  Stage stage;
  Problem problem;
  const Table& table = stage.table(kind);
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t value = 0;
  for (Transaction* txn : {&a, &b}) {
    problem.expect(txn->begin(), Status::ok, "begin");
    problem.expect(table.get(*txn, 10, value), Status::ok, "read x");
    problem.expect(table.get(*txn, 20, value), Status::ok, "read y");
  }
  problem.expect(table.put(a, 10, 1), Status::ok, "a writes x");
  problem.expect(table.put(b, 20, 1), Status::ok, "b writes y");
  problem.expect(a.commit(), Status::ok, "first commit");
  problem.expect(b.commit(), Status::read_conflict, "second commit");
  return problem.text();
}

/// One transaction reads x before another transaction writes x and y, and reads y afterwards.
inline std::string read_skew(Kind kind) {
  Stage stage;
  Problem problem;
  const Table& table = stage.table(kind);
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.get(a, 10, value), Status::ok, "read x");
  stage.commit_alone([&](Transaction& b) {
    const Status status = table.put(b, 10, 1);
    return status == Status::ok ? table.put(b, 20, 1) : status;
  });
  problem.expect(table.get(a, 20, value), Status::ok, "read y");
  problem.expect(a.commit(), Status::read_conflict, "commit of a reader of two states");
  return problem.text();
}

/// The writer of a locked record may have decided to commit. Therefore the verification of a read
/// of this record must fail.
inline std::string read_of_locked_record(Kind kind) {
  Stage stage;
  Problem problem;
  const Table& table = stage.table(kind);
  Transaction& a = stage.a();
  RecordRef ref;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(table.find(a, 10, ref), Status::ok, "read x");
  McsLocker& other = stage.b().worker().locker();
  problem.expect(other.lock(ref.record->lock, ref.name()), Status::ok, "foreign lock");
  problem.expect(a.commit(), Status::read_conflict, "commit of a read under a foreign lock");
  other.unlock(ref.record->lock);
  return problem.text();
}

/// R6, R12: a transaction scans, and then another one inserts into the scanned range. `writes`: the
/// scanning transaction also writes.
inline std::string scan_then_foreign_insert(bool forward, bool writes) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, forward, count), Status::ok, "scan");
  problem.expect(count == 3, "the scan found " + std::to_string(count) + " records, not 3");
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 33, 1); });
  if (writes) problem.expect(stage.array().put(a, 1, count), Status::ok, "write");
  problem.expect(a.commit(), Status::phantom, "commit after a phantom");
  return problem.text();
}

/// A look-up answers "not found". Then another transaction inserts exactly that key.
inline std::string not_found_then_foreign_insert() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t value = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().get(a, 33, value), Status::not_found, "look-up");
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 33, 1); });
  problem.expect(stage.array().put(a, 1, 1), Status::ok, "write");
  problem.expect(a.commit(), Status::phantom, "commit after a phantom");
  return problem.text();
}

/// Write skew on absence: each transaction finds the other's key missing and inserts its own.
inline std::string phantom_write_skew() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t count = 0;
  for (Transaction* txn : {&a, &b}) {
    problem.expect(txn->begin(), Status::ok, "begin");
    problem.expect(stage.tree().scan(*txn, 31, 39, true, count), Status::ok, "scan");
    problem.expect(count == 0, "the range is not empty");
  }
  const Status first = finish(a, stage.tree().insert(a, 33, 1));
  const Status second = finish(b, stage.tree().insert(b, 34, 1));
  problem.expect(first, Status::ok, "first insert into an empty range");
  problem.expect(second, Status::phantom, "second insert into a range that was empty");
  return problem.text();
}

/// R12: a scan passes a tombstone. Then an insert of another transaction revives the tombstone. No
/// slot is added, but the page word changes.
inline std::string scan_then_tombstone_is_revived(bool forward) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, forward, count), Status::ok, "scan");
  problem.expect(count == 2, "the scan returned a tombstone");
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 30, 1); });
  problem.expect(a.commit(), Status::phantom, "commit after a tombstone was revived");
  return problem.text();
}

/// R12: a scan runs in the middle of an insert, after the page word has changed. The commit must
/// then detect the insert by the record itself: a new record, or a tombstone that is about to be
/// revived.
inline std::string scan_amid_foreign_insert(bool revives, bool forward) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t count = 0;
  const uint64_t key = revives ? 30 : 33;
  if (revives) stage.commit_alone([&](Transaction& txn) { return stage.tree().erase(txn, 30); });
  problem.expect(b.begin(), Status::ok, "begin of the insert");
  problem.expect(stage.tree().insert(b, key, 1), Status::ok, "insert");
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, forward, count), Status::ok, "scan");
  problem.expect(count == (revives ? 2 : 3), "the scan saw what was not committed");
  problem.expect(b.commit(), Status::ok, "commit of the insert");
  problem.expect(a.commit(), Status::read_conflict, "commit of a scan that missed an insert");
  return problem.text();
}

/// R12: a transaction plans a blind write to a living record, which is erased before the commit. A
/// scan in between relies on the page word for the absence of the record. Therefore the write must
/// not revive the record without changing that word.
inline std::string scan_between_erase_and_blind_write() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  Transaction& b = stage.b();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().put(a, 30, 1), Status::ok, "blind write");
  stage.commit_alone([&](Transaction& txn) { return stage.tree().erase(txn, 30); });
  problem.expect(b.begin(), Status::ok, "begin of the scan");
  problem.expect(stage.tree().scan(b, 15, 45, true, count), Status::ok, "scan");
  problem.expect(count == 2, "the scan returned a tombstone");
  const bool written = a.commit() == Status::ok;
  const bool scanned = b.commit() == Status::ok;
  problem.expect(!(written && scanned), "both committed: the scan missed the write");
  problem.expect(scanned, "the scan aborted, though nothing was revived");
  return problem.text();
}

inline std::string look_up_then_tombstone_is_revived() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().get(a, 30, value), Status::not_found, "look-up");
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 30, 1); });
  problem.expect(a.commit(), Status::read_conflict, "commit after a tombstone was revived");
  return problem.text();
}

/// R6: an insert turns another key's record into a next layer. The page has as many slots as
/// before. Therefore only the counter in the page word shows the change.
inline std::string scan_then_foreign_layer() {
  Stage stage;
  Problem problem;
  const std::string first = "prefix01-one";
  const std::string second = "prefix01-two";
  const MasterTree tree(stage.empty_tree("layered"));
  const auto insert = [&](Transaction& txn, const std::string& key) {
    return tree.insert(txn, bytes_view(key.data(), key.size()), {});
  };
  CHECK(stage.cluster().worker(1).run([&](Transaction& b) { return insert(b, first); }) ==
        Status::ok);
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  MasterTreeCursor cursor(tree, a, {}, true);
  problem.expect(cursor.next(), Status::ok, "first record");
  problem.expect(cursor.next(), Status::end_of_scan, "end of the scan");
  stage.commit_alone([&](Transaction& b) { return insert(b, second); });
  problem.expect(a.commit(), Status::phantom, "commit after a phantom in a new layer");
  return problem.text();
}

/// R13: a transaction scans a range, and then inserts into it. An insert of another transaction
/// between these two steps must still be detected.
inline std::string scan_foreign_insert_own_insert() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().scan(a, 15, 45, true, count), Status::ok, "scan");
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 33, 1); });
  problem.expect(finish(a, stage.tree().insert(a, 34, count)), Status::phantom,
                 "own insert after a foreign one");
  return problem.text();
}

/// R4: a transaction depends on the absence of a page, too: of a tree's root, or of an array leaf.
inline std::string absence_of_a_page_then_foreign_install(Kind kind) {
  Stage stage;
  Problem problem;
  StorageControl& empty =
      kind == Kind::tree ? stage.empty_tree("empty")
                         : stage.cluster().create("empty", StorageType::array, 8, Stage::kKeys);
  const Table table(kind, empty);
  Transaction& a = stage.a();
  uint64_t value = 1;
  problem.expect(a.begin(), Status::ok, "begin");
  if (kind == Kind::tree) {
    problem.expect(table.get(a, 5, value), Status::not_found, "look-up in an empty tree");
  } else {
    problem.expect(table.get(a, 5, value), Status::ok, "read of a missing leaf");
    problem.expect(value == 0, "a record never written is not zero");
  }
  problem.expect(a.pointer_set_size() == 1, "the null pointer is not in the pointer set");
  stage.commit_alone([&](Transaction& b) { return table.put(b, 5, 7); });
  problem.expect(stage.array().put(a, 10, value), Status::ok, "write elsewhere");
  problem.expect(a.commit(), Status::pointer_installed, "commit after a page was installed");
  return problem.text();
}

}  // namespace atolldb::test
