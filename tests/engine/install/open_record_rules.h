// Bodies of tests of open records: writes of cold records that read nothing (R82). A body returns
// an error text, or an empty text if all is right.
#pragma once

#include <atomic>
#include <string>

#include "engine/mastertree/cursor.h"
#include "engine/snapshot/published_snapshots.h"
#include "tests/engine/install/cold_tree.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// R82: a transaction plans a write of record 5 without a read. Others see the snapshot's record
/// until the writer commits. A reader that has seen it must not commit after that.
inline std::string open_records_hide_nothing() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  Transaction& writer = *test.warm.cluster.worker(0).transaction;
  Transaction& reader = *test.warm.cluster.worker(1).transaction;
  const std::string five = big_endian(5);
  const Bytes key = bytes_of(five);
  for (const bool commits : {false, true}) {
    problem.expect(writer.begin(), Status::ok, "begin");
    problem.expect(test.tree.upsert(writer, key, bytes_of("mine")), Status::ok, "upsert");
    std::string value;
    problem.expect(reader.begin(), Status::ok, "begin");
    problem.expect(ColdTree::read(reader, test.tree, 5, value), Status::ok, "a read beside it");
    problem.expect(value == "old", "a read beside an open record finds " + value);
    problem.expect(test.scan_in(reader, 4, 7) == "old old old ", "a scan misses the record");
    problem.expect(test.scan_in(reader, 4, 7, false) == "old old old ",
                   "a scan backward misses the record");
    problem.expect(ColdTree::read(writer, test.tree, 5, value), Status::ok, "a read of its own");
    problem.expect(value == "mine", "a transaction does not see its own write");
    if (commits) {
      problem.expect(writer.commit(), Status::ok, "commit");
      problem.expect(is_abort(reader.commit()), "a reader commits after the write");
    } else {
      problem.expect(reader.commit(), Status::ok, "the commit of a reader");
      writer.rollback(Status::user_abort);
    }
  }
  problem.expect(test.value_of(5) == "mine", "the write is lost");
  return problem.text();
}

/// R82: an aborted transaction has left open records. Writes that depend on the snapshot's record
/// find it.
inline std::string open_records_are_closed() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  constexpr uint64_t kAbsent = ColdTree::kRecords + 5;
  const auto leave_open = [&](uint64_t number, const std::string& value) {
    Transaction& writer = *test.warm.cluster.worker(0).transaction;
    problem.expect(writer.begin(), Status::ok, "begin");
    problem.expect(test.tree.upsert(writer, bytes_of(big_endian(number)), bytes_of(value)),
                   Status::ok, "upsert");
    writer.rollback(Status::user_abort);
  };
  const auto run = [&](auto&& write) { return test.warm.cluster.worker(1).run(write); };
  leave_open(5, "longer than the record");
  problem.expect(run([&](Transaction& txn) {
                   return test.tree.insert(txn, bytes_of(big_endian(5)), bytes_of("twice"));
                 }),
                 Status::already_exists, "an insert of an existing key");
  leave_open(6, "");  // its copy needs more room
  problem.expect(run([&](Transaction& txn) {
                   return test.tree.update_range(txn, bytes_of(big_endian(6)), 1, bytes_of("x"));
                 }),
                 Status::ok, "an update of a part");
  problem.expect(test.value_of(6) == "oxd", "a part of the record is lost");
  leave_open(7, "mine");
  problem.expect(test.erase(1, 7), Status::ok, "erasing");
  problem.expect(test.value_of(7) == to_string(Status::not_found), "the record is not deleted");
  leave_open(kAbsent, "mine");
  problem.expect(test.erase(1, kAbsent), Status::not_found, "erasing an absent record");
  problem.expect(test.value_of(kAbsent) == to_string(Status::not_found),
                 "an aborted write is seen");
  leave_open(8, "mine");
  problem.expect(test.value_of(8) == "old", "an aborted write hides the record");
  return problem.text();
}

/// R82: a transaction writes the same cold records several times, first without a read. Its own
/// writes stay valid when their records move. It does not close them, so it commits at the first
/// attempt.
inline std::string own_open_records_stay_usable() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  const std::string long_value(300, 'x');
  const auto key = [](uint64_t number) { return big_endian(number); };
  std::string value;
  problem.expect(txn.begin(), Status::ok, "begin");
  for (const uint64_t number : {5ull, 6ull, 7ull, 8ull}) {
    problem.expect(test.tree.upsert(txn, bytes_of(key(number)), bytes_of("abc")), Status::ok,
                   "upsert");
  }
  // The record moves, because it has no room.
  problem.expect(test.tree.update(txn, bytes_of(key(5)), bytes_of(long_value)), Status::ok,
                 "a longer update");
  problem.expect(test.tree.erase(txn, bytes_of(key(6))), Status::ok, "erase");
  problem.expect(ColdTree::read(txn, test.tree, 6, value), Status::not_found, "an erased record");
  problem.expect(test.tree.insert(txn, bytes_of(key(6)), bytes_of(long_value)), Status::ok,
                 "an insert after it");
  problem.expect(test.tree.insert(txn, bytes_of(key(7)), bytes_of("twice")), Status::already_exists,
                 "an insert of an own record");
  // Splits the page of record 8.
  for (uint64_t number = 100; number < 200; ++number) {
    problem.expect(test.tree.upsert(txn, bytes_of(key(number)), bytes_of("mine")), Status::ok,
                   "upsert");
  }
  problem.expect(test.tree.update_range(txn, bytes_of(key(8)), 1, bytes_of("x")), Status::ok,
                 "an update of a part");
  problem.expect(test.scan_in(txn, 7, 10) == "abc axc old ", "a scan misses own writes");
  problem.expect(txn.commit(), Status::ok, "commit");
  problem.expect(test.value_of(5) == long_value && test.value_of(6) == long_value,
                 "long values are lost");
  problem.expect(test.scan(7, 10) == "abc axc old ", "writes are lost");
  return problem.text();
}

/// R82: an own write that was planned without a read does not change the version that reads and
/// scans return.
inline std::string own_open_records_keep_the_version() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  // Marks the pointers: a transaction that sets a mark below which it has read aborts (R76).
  problem.expect(test.write_both(1, 6, ColdTree::kRecords - 1), Status::ok, "writing");
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  constexpr uint64_t kAbsent = ColdTree::kRecords + 5;
  const auto version_of = [&](uint64_t number) {
    Vid seen;
    char buffer[8];
    uint32_t bytes = 0;
    const Status status =
        test.tree.get(txn, bytes_of(big_endian(number)), buffer, sizeof buffer, bytes, seen);
    problem.expect(status == Status::ok || status == Status::not_found, "get");
    return seen;
  };
  problem.expect(txn.begin(), Status::ok, "begin");
  const Vid before = version_of(5);
  problem.expect(before.ordinal() != 0, "the snapshot's record has no version");
  for (const uint64_t number : {uint64_t{5}, kAbsent}) {
    problem.expect(test.tree.upsert(txn, bytes_of(big_endian(number)), bytes_of("mine")),
                   Status::ok, "upsert");
  }
  problem.expect(version_of(5) == before, "a write changes the version");
  problem.expect(version_of(kAbsent) == Vid(), "an absent record has a version");
  const std::string low = big_endian(5);
  MasterTreeCursor cursor(test.tree, txn, {.low = bytes_of(low), .has_low = true}, true);
  problem.expect(cursor.next(), Status::ok, "scan");
  problem.expect(cursor.vid() == before, "a scan finds another version");
  problem.expect(txn.commit(), Status::ok, "commit");
  return problem.text();
}

/// R18, R82: a transaction that reads a snapshot overwrites record 5, which another one has changed
/// since. The change is in the next snapshot, and the delta tree has only an open record. `late`:
/// the first one has planned its write before that, on a record that was drained.
inline std::string snapshot_writes_notice_what_open_records_hide(bool late) {
  ColdTree test(2);
  Problem problem;
  std::string done = test.prepare();
  problem.expect(done.empty(), done);
  TestCluster& cluster = test.warm.cluster;
  std::atomic<uint32_t>& readable = cluster.view().control->readable_snapshot;
  PublishedSnapshots published(*cluster.view().shared[0], readable);
  cluster.use_published(published);
  const SnapshotStage& stage = test.warm.stage;
  problem.expect(published.publish(ColdCluster::view_of(stage, stage.storage.id)).has_value(),
                 "the snapshot is not published");
  readable.store(stage.snapshot, std::memory_order_seq_cst);
  const std::string five = big_endian(5);
  Transaction& writer = *cluster.worker(0).transaction;
  problem.expect(writer.begin(kMaxEpoch, {Isolation::snapshot}), Status::ok, "begin");
  const auto plan = [&] {
    problem.expect(test.tree.update(writer, bytes_of(five), bytes_of("mine")), Status::ok,
                   "update");
  };
  if (late) plan();
  problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
  cluster.worker(1).context->leave();
  done = test.take_beside_readers({{5, "new"}});
  if (done.empty()) done = test.warm.install(drop_all);
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.drained != 0, "nothing was drained");
  Transaction& other = *cluster.worker(1).transaction;
  problem.expect(other.begin(), Status::ok, "begin");
  problem.expect(test.tree.upsert(other, bytes_of(five), bytes_of("void")), Status::ok, "upsert");
  other.rollback(Status::user_abort);
  if (!late) plan();
  problem.expect(is_abort(writer.commit()), "overwrites a commit that it has not seen");
  problem.expect(test.value_of(5) == "new", "a committed write is lost");
  return problem.text();
}

}  // namespace atolldb::test
