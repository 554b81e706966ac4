// Bodies of tests of absent keys of delta trees (R108). A body returns an error text, or an empty
// text if all is right.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "engine/mastertree/delta.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/cold_tree.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// A cold tree whose pointers have marks. Worker 0 reads, and worker 1 writes.
class AbsenceTree : public ColdTree {
 public:
  AbsenceTree() : ColdTree(2) {}

  std::string prepare_marks() {
    const std::string problem = prepare();
    if (!problem.empty()) return problem;
    return write_both(1, 3, kRecords - 1) == Status::ok ? "" : "the first writes failed";
  }
  Transaction& reader() { return *warm.cluster.worker(0).transaction; }
  Transaction& writer() { return *warm.cluster.worker(1).transaction; }

  /// Begins the transaction of the reader, which finds `value` for the key.
  void begin_and_read(Problem& problem, const std::string& key, const std::string& value) {
    problem.expect(reader().begin(), Status::ok, "begin");
    read_again(problem, key, value);
  }
  void read_again(Problem& problem, const std::string& key, const std::string& expected) {
    std::string value;
    const Status status = read_key(reader(), tree, key, value);
    if (status == Status::not_found) value = "nothing";
    problem.expect(value == expected, "the reader finds " + value + " instead of " + expected);
  }
  Status insert(const std::string& key, const std::string& value) {
    return warm.cluster.worker(1).run(
        [&](Transaction& txn) { return tree.insert(txn, bytes_of(key), bytes_of(value)); });
  }
  /// Returns the record of the key in the delta tree.
  TreeRecord* record_of(const std::string& key) {
    return locate(*warm.cluster.worker(1).context, warm.storage, bytes_of(key),
                  delta_link(warm.storage))
        .record;
  }
  /// A key that the snapshot lacks. Its delta record has a slice that is also the key of record 5.
  static std::string long_key(const std::string& end) { return big_endian(5) + end; }
};

/// The reader has found nothing in a page of the delta tree. Other keys of the page do not abort
/// it, even if they fill the page and it is split. `by_own`: the reader makes these changes.
inline std::string neighbours_abort_no_reader(bool by_own) {
  AbsenceTree test;
  Problem problem;
  const std::string done = test.prepare_marks();
  problem.expect(done.empty(), done);
  for (const uint64_t last : {8ull, 500ull}) {
    const std::string seven = big_endian(7);
    test.begin_and_read(problem, seven, "old");
    test.read_again(problem, test.long_key("x"), "nothing");
    for (uint64_t key = 8; key <= last; ++key) {
      const std::string text = big_endian(key);
      if (by_own) {
        problem.expect(test.tree.upsert(test.reader(), bytes_of(text), bytes_of("mine")),
                       Status::ok, "an own write");
      } else {
        problem.expect(test.write(1, key, "new"), Status::ok, "writing");
      }
    }
    test.read_again(problem, seven, "old");
    problem.expect(test.reader().commit(), Status::ok, "commit after writes of neighbours");
  }
  return problem.text();
}

/// The reader writes a key that it has not found in the delta tree, and another transaction writes
/// a neighbour. `is_late`: after the reader.
inline std::string own_records_are_no_changes(bool is_late) {
  AbsenceTree test;
  Problem problem;
  const std::string done = test.prepare_marks();
  problem.expect(done.empty(), done);
  using Write = std::function<Status(Transaction&, Bytes key)>;
  const std::pair<uint64_t, Write> writes[] = {
      {20,
       [&](Transaction& txn, Bytes key) { return test.tree.update(txn, key, bytes_of("new")); }},
      {30,
       [&](Transaction& txn, Bytes key) { return test.tree.upsert(txn, key, bytes_of("new")); }},
      {40, [&](Transaction& txn, Bytes key) { return test.tree.erase(txn, key); }},
      {ColdTree::kRecords + 50,
       [&](Transaction& txn, Bytes key) { return test.tree.insert(txn, key, bytes_of("new")); }}};
  for (const auto& [number, write] : writes) {
    const std::string key = big_endian(number);
    const uint64_t neighbour = number % ColdTree::kRecords + 1;
    test.begin_and_read(problem, key, number < ColdTree::kRecords ? "old" : "nothing");
    if (!is_late) problem.expect(test.write(1, neighbour, "new"), Status::ok, "writing");
    problem.expect(write(test.reader(), bytes_of(key)), Status::ok, "the own write");
    if (is_late) problem.expect(test.write(1, neighbour, "new"), Status::ok, "writing");
    problem.expect(test.reader().commit(), Status::ok, "commit of write " + std::to_string(number));
  }
  return problem.text();
}

/// The reader has not found the key in the delta tree, and a commit has written it meanwhile.
inline std::string written_keys_are_no_absences(bool is_long, bool splits) {
  AbsenceTree test;
  Problem problem;
  const std::string done = test.prepare_marks();
  problem.expect(done.empty(), done);
  const std::string key = is_long ? test.long_key("x") : big_endian(7);
  if (is_long) problem.expect(test.insert(test.long_key("y"), "other"), Status::ok, "insert");
  test.begin_and_read(problem, key, is_long ? "nothing" : "old");
  for (uint64_t other = 10; splits && other < 500; ++other) {
    problem.expect(test.write(1, other, "new"), Status::ok, "writing");
  }
  problem.expect(test.warm.cluster.worker(1).run([&](Transaction& txn) {
    Status status = test.tree.upsert(txn, bytes_of(key), bytes_of("new"));
    if (status == Status::ok)
      status =
          test.tree.update(txn, bytes_of(big_endian(ColdTree::kRecords - 1)), bytes_of("newer"));
    return status;
  }),
                 Status::ok, "writing");
  test.read_again(problem, big_endian(ColdTree::kRecords - 1), "newer");
  problem.expect(test.reader().commit(), Status::phantom, "commit after a write of the key");
  return problem.text();
}

#ifdef ATOLL_MUTANTS
/// Two transactions each read the record that the other one writes. The second one commits while
/// the first one is verified and has written nothing.
inline std::string records_about_to_be_written_are_no_absences() {
  AbsenceTree test;
  Problem problem;
  const std::string done = test.prepare_marks();
  problem.expect(done.empty(), done);
  const std::string seven = big_endian(7);
  const std::string eight = big_endian(8);
  test.begin_and_read(problem, seven, "old");
  std::string value;
  problem.expect(test.writer().begin(), Status::ok, "begin");
  problem.expect(ColdTree::read(test.writer(), test.tree, 8, value), Status::ok, "read");
  problem.expect(test.tree.update(test.writer(), bytes_of(seven), bytes_of("new")), Status::ok,
                 "update");
  problem.expect(test.tree.update(test.reader(), bytes_of(eight), bytes_of("new")), Status::ok,
                 "update");
  Status second = Status::ok;
  {
    const AtFirst at_point(SyncPoint::verified, [&] { second = test.reader().commit(); });
    problem.expect(test.writer().commit(), Status::ok, "the first commit");
    problem.expect(at_point.was_reached(), "the first commit was not verified");
  }
  problem.expect(second, Status::phantom, "the second commit");
  return problem.text();
}

#endif

/// A commit writes the long key that the reader has not found.
inline std::string long_keys_that_are_being_written_are_no_absences() {
  AbsenceTree test;
  Problem problem;
  const std::string done = test.prepare_marks();
  problem.expect(done.empty(), done);
  const std::string key = test.long_key("x");
  test.begin_and_read(problem, key, "nothing");
  problem.expect(test.writer().begin(), Status::ok, "begin");
  problem.expect(test.tree.insert(test.writer(), bytes_of(key), bytes_of("new")), Status::ok,
                 "insert");
  TreeRecord* record = test.record_of(key);
  problem.expect(record != nullptr, "no record was reserved");
  if (record == nullptr) return problem.text();
  const Vid reserved = record->head.load_acquire();
  record->head.vid.store(reserved.with(Vid::kBeingWritten).word(), std::memory_order_release);
  problem.expect(test.reader().commit(), Status::phantom, "commit amid the write");
  record->head.vid.store(reserved.word(), std::memory_order_release);
  test.writer().rollback(Status::user_abort);
  return problem.text();
}

/// The reader has not found a key, and then sees another write of the transaction that inserts it.
/// Then the key is erased and its tombstone is drained. The pointer does not change, because the
/// snapshot has no change of its range.
inline std::string drained_keys_are_no_absences() {
  AbsenceTree test;
  Problem problem;
  StorageControl& other = test.warm.cluster.create("array", StorageType::array, 8, 10);
  const Array array(other);
  std::string done = test.prepare_large();
  problem.expect(done.empty(), done);
  const std::string key = test.long_key("x");
  const uint64_t one = 1;
  // An open record of an aborted transaction sets the mark.
  problem.expect(test.writer().begin(), Status::ok, "begin");
  problem.expect(test.tree.upsert(test.writer(), bytes_of(big_endian(3)), bytes_of("mine")),
                 Status::ok, "upsert");
  test.writer().rollback(Status::user_abort);
  test.begin_and_read(problem, key, "nothing");
  problem.expect(test.warm.cluster.worker(1).run([&](Transaction& txn) {
    Status status = test.tree.insert(txn, bytes_of(key), bytes_of("new"));
    if (status == Status::ok) status = array.update(txn, 1, 0, 8, &one);
    return status;
  }),
                 Status::ok, "an insert");
  uint64_t seen = 0;
  problem.expect(array.get(test.reader(), 1, &seen), Status::ok, "a read of the array");
  problem.expect(seen == 1, "the insert is not seen");
  problem.expect(test.warm.cluster.worker(1).run(
                     [&](Transaction& txn) { return test.tree.erase(txn, bytes_of(key)); }),
                 Status::ok, "erasing");
  test.warm.cluster.worker(1).context->leave();
  done = test.take_beside_readers({});
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 6, "newer"), Status::ok, "writing");  // keeps the mark
  test.warm.cluster.worker(1).context->leave();
  done = test.warm.install(keep_all);
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.drained >= 2, "the tombstone was not drained");
  problem.expect(test.reader().commit(), Status::phantom, "commit after the drain");
  return problem.text();
}

}  // namespace atolldb::test
