// R14: own pending writes whose volatile page is dropped onto a snapshot before the transaction
// reads them. A body returns an error text, or an empty text if all is right. Every run takes the
// same steps.
#pragma once

#include <string>

#include "tests/engine/install/drop_rules.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

/// A transaction overwrites or increments a record of an array without reading it. Then the leaf is
/// dropped. A read of the record by the transaction must end as a conflict.
inline std::string own_write_in_a_dropped_leaf(bool adds) {
  DropStage stage;
  stage.fill(0, 1);
  Problem problem;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  const uint64_t index = stage.index(0, 0, 0);
  int64_t value = 0;
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(stage.change(txn, {index, adds, 5}), Status::ok, "write");
  InstallReport report;
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  problem.expect(report.dropped != 0, "nothing was dropped");
  problem.expect(stage.get(txn, stage.index(0, 0, 1), value), Status::ok, "read beside it");
  const Status status = stage.get(txn, index, value);
  problem.expect(status, Status::write_conflict, "read of the own write");
  txn.rollback(status);
  problem.expect(stage.write(0, {{index, adds, 5}}), Status::ok, "the next attempt");
  problem.expect(stage.read(1, index) == (adds ? 6 : 5), "the next attempt has written nothing");
  return problem.text();
}

/// An own write is in a dropped page, and no read follows the drop. A user abort must still fail,
/// because its result may depend on reads that missed the write.
inline std::string user_abort_after_the_drop_of_an_own_write() {
  DropStage stage;
  stage.fill(0, 1);
  Problem problem;
  Transaction& txn = *stage.cluster.worker(0).transaction;
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(stage.change(txn, {stage.index(0, 0, 0), false, 5}), Status::ok, "write");
  InstallReport report;
  const std::string installed = stage.snapshot_and_install(report);
  problem.expect(installed.empty(), installed);
  problem.expect(txn.commit_user_abort(), Status::read_conflict, "user abort");
  return problem.text();
}

/// A transaction overwrites a living record of a tree without reading it. Then the page is dropped.
/// A look-up or a scan of the transaction that meets the record must end as a conflict.
inline std::string own_write_in_a_dropped_page(bool by_scan) {
  DroppableTree test(1);
  Problem problem;
  const std::string filled = test.fill();
  problem.expect(filled.empty(), filled);
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  const std::string key = big_endian(500);
  const std::string end = big_endian(510);
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(test.tree.upsert(txn, bytes_of(key), bytes_of("new")), Status::ok, "write");
  const std::string installed = test.warm.install(drop_all);
  problem.expect(installed.empty(), installed);
  problem.expect(test.warm.report.dropped != 0, "nothing was dropped");
  std::string value;
  Status status = DroppableTree::read(txn, test.tree, 501, value);
  problem.expect(status, Status::ok, "read beside it");
  if (by_scan) {
    MasterTreeCursor cursor(
        test.tree, txn,
        ScanRange{.low = bytes_of(key), .has_low = true, .high = bytes_of(end), .has_high = true},
        true);
    status = cursor.next();
  } else {
    status = DroppableTree::read(txn, test.tree, 500, value);
  }
  problem.expect(status, Status::write_conflict, "read of the own write");
  txn.rollback(status);
  problem.expect(test.write(0, 500, "new"), Status::ok, "the next attempt");
  problem.expect(test.value_of(500) == "new", "the next attempt has written nothing");
  return problem.text();
}

}  // namespace atolldb::test
