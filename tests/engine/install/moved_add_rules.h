// The body of the rule that additions notice records that were moved (R83). It needs the sync
// points of the builds with mutants.
#pragma once

#include <string>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/add_rules.h"

namespace atolldb::test {

/// R83: the open record is moved after its reservation, and another transaction writes it in its
/// new place. The old place shows no such write, so the addition searches the record again.
inline std::string adds_notice_moved_records() {
  AddTree test;
  Problem problem;
  const std::string done = test.prepare_window();
  problem.expect(done.empty(), done);
  Transaction& txn = *test.warm.cluster.worker(0).transaction;
  problem.expect(txn.begin(), Status::ok, "begin");
  problem.expect(test.add_in(txn, 5, 1), Status::ok, "an addition that leaves the record open");
  txn.rollback(Status::user_abort);
  problem.expect(txn.begin(), Status::ok, "begin");
  Status added = Status::user_abort;
  {
    const AtFirst at_point(SyncPoint::adding_blindly, [&] {
      const WorkerMetrics& metrics = test.warm.cluster.metrics(0, 1);
      const uint64_t before = metrics.splits.get();
      for (uint64_t key = 6; key < ColdTree::kRecords && metrics.splits.get() == before; ++key) {
        problem.expect(test.add(1, key, 1), Status::ok, "adding beside it");
      }
      problem.expect(metrics.splits.get() != before, "the page was not split");
      problem.expect(test.add(1, 5, 1000), Status::ok, "the other addition");
    });
    added = test.add_in(txn, 5, 7);
  }
  // With the VID of the old place, the commit would notice no drain of the record (R82). It would
  // notice this write, and end.
  problem.expect(added == Status::ok && txn.commit() == Status::ok,
                 "the addition is not committed");
  if (txn.is_active()) txn.rollback(added);
  problem.expect(test.value_of(5) == with_sum("old", 1007), "an addition is lost");
  return problem.text();
}

}  // namespace atolldb::test
