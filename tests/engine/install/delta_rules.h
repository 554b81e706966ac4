// Bodies of tests of delta trees (R76 to R80, R82, R83). The interleavings are fixed. A body
// returns an error text, or an empty text if all is right.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/add_rules.h"

namespace atolldb::test {

/// A transaction reads record `key` of the snapshot. Then another one changes this record and
/// record `mark`, in the delta tree. The first one reads the mark, too, and must not commit.
inline void expect_no_commit(ColdTree& test, Problem& problem, uint64_t key, uint64_t mark) {
  Transaction& reader = *test.warm.cluster.worker(0).transaction;
  std::string value;
  problem.expect(reader.begin(), Status::ok, "begin");
  problem.expect(ColdTree::read(reader, test.tree, key, value), Status::ok, "read");
  problem.expect(value == "old", "reads another record");
  problem.expect(test.write_both(1, key, mark), Status::ok, "writing");
  problem.expect(ColdTree::read(reader, test.tree, mark, value), Status::ok, "read");
  problem.expect(value == "new", "does not read the change");
  problem.expect(is_abort(reader.commit()), "saw what was before the other, and what was after it");
}

/// R76: a record that was added to the delta tree is found, because its pointer has a mark.
inline std::string changes_in_the_delta_tree_are_found() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  expect_no_commit(test, problem, 5, 900);
  problem.expect(test.value_of(5) == "new", "the change is lost");
  return problem.text();
}

/// R76: a page with a marked pointer is dropped. The pointer to that page is marked then.
inline std::string a_dropped_page_hands_its_mark_on() {
  ColdTree test(2);
  Problem problem;
  std::string done = test.prepare_large();
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
  test.warm.cluster.worker(1).context->leave();
  done = test.warm.install(drop_all);  // the same snapshot; now the pages of level 1 are dropped
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.dropped != 0, "no page was dropped");
  problem.expect(test.value_of(5) == "new", "the change is lost");
  return problem.text();
}

/// R76: a drain removes some records of the delta tree. The pointers of the others stay marked.
inline std::string marks_stay_while_there_are_records() {
  ColdTree test(2);
  Problem problem;
  std::string done = test.prepare();
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
  done = test.take({{5, "new"}});
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 900, "newer"), Status::ok, "writing");
  done = test.warm.install(drop_all);
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.drained == 1, "not only the older record was drained");
  problem.expect(test.value_of(5) == "new", "the older change is lost");
  problem.expect(test.value_of(900) == "newer", "the newer change is lost");
  return problem.text();
}

/// Runs `write`, which changes record 5 in a transaction that goes on. Before its worker locks the
/// page of the delta tree, another one changes the record there. A snapshot of that change is
/// installed, and the drain clears the mark of the pointer.
inline void write_after_a_drain(ColdTree& test, Problem& problem,
                                const std::function<Status(Transaction&)>& write) {
  std::string done = test.prepare();
  problem.expect(done.empty(), done);
  // From now on there is a delta tree with a page that stays.
  problem.expect(test.write(1, 900, "new"), Status::ok, "writing");
  Transaction& late = *test.warm.cluster.worker(0).transaction;
  problem.expect(late.begin(), Status::ok, "begin");
  {
    const AtFirst at_point(SyncPoint::locking_page, [&] {
      problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
      test.warm.cluster.worker(1).context->leave();
      done = test.take_beside_readers({{5, "new"}, {900, "new"}});
      if (done.empty()) done = test.warm.install(drop_all);
    });
    problem.expect(write(late), Status::ok, "the late write");
    problem.expect(at_point.was_reached(), "no page was locked");
  }
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.drained != 0, "nothing was drained");
}

/// R77: a worker has read a record of the snapshot and is about to copy it to the delta tree, when
/// the delta tree is drained.
inline std::string an_outdated_record_is_not_copied() {
  ColdTree test(2);
  Problem problem;
  write_after_a_drain(test, problem, [&](Transaction& late) {
    return test.tree.update(late, bytes_of(big_endian(5)), bytes_of("mine"));
  });
  test.warm.cluster.worker(0).transaction->rollback(Status::user_abort);
  // Marks the pointer again, because the drain has cleared the mark.
  problem.expect(test.write(1, 6, "newer"), Status::ok, "writing");
  problem.expect(test.value_of(5) == "new", "an older record hides the change");
  return problem.text();
}

/// R78: a deleted record of the delta tree hides the record of the snapshot, however old it is. A
/// split of its page must keep it.
inline std::string tombstones_in_the_delta_tree_stay() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  problem.expect(test.erase(1, 5), Status::ok, "erasing");
  TestCluster& cluster = test.warm.cluster;
  const EpochBlock& epochs = cluster.view().control->epochs;
  cluster.worker(1).context->leave();
  const uint64_t epoch = test.warm.settle();
  while (epochs.oldest_begin.load(std::memory_order_acquire) <= epoch) std::this_thread::yield();
  const uint64_t splits = cluster.metrics(0, 1).splits.get();
  for (uint64_t key = 10; key < 500; ++key) {
    problem.expect(test.write(1, key, "new"), Status::ok, "writing");
  }
  problem.expect(cluster.metrics(0, 1).splits.get() > splits, "no page was split");
  problem.expect(test.value_of(5) == to_string(Status::not_found), "a deleted record is back");
  problem.expect(test.scan(4, 7) == "old old ", "a scan finds a deleted record");
  return problem.text();
}

/// R78: a page of the new snapshot cannot be read, so some pointers still lead to the older one.
/// The delta tree must keep the changes between the two.
inline std::string records_stay_while_pointers_are_old() {
  ColdTree test(2);
  Problem problem;
  std::string done = test.prepare();
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
  done = test.take({{5, "new"}});
  problem.expect(done.empty(), done);
  const SnapshotPointer root = test.warm.stage.storage.base_root;
  problem.expect(test.warm.stage.power_cut()
                     .corrupt(test.warm.stage.path(root.node(), root.snapshot()),
                              root.page() * kPageBytes + 1000, 1)
                     .has_value(),
                 "the page was not damaged");
  done = test.warm.install(drop_all);
  problem.expect(done.empty(), done);
  problem.expect(test.warm.report.is_damaged, "the damage was not noticed");
  problem.expect(test.value_of(5) == "new", "the change is lost");
  return problem.text();
}

/// R82: an open record is about to be added, when the mark of its pointer is cleared. It must not
/// be added then: no look-up would find it.
inline std::string open_records_need_a_mark() {
  ColdTree test(2);
  Problem problem;
  write_after_a_drain(test, problem, [&](Transaction& late) {
    return test.tree.upsert(late, bytes_of(big_endian(5)), bytes_of("mine"));
  });
  const Status status = test.warm.cluster.worker(0).transaction->commit();
  problem.expect(status == Status::ok || is_abort(status), "commit");
  const std::string expected = status == Status::ok ? "mine" : "new";
  problem.expect(test.value_of(5) == expected, "a committed write is lost");
  return problem.text();
}

/// R82, R83: does the same for the open record of an addition.
inline std::string additions_need_a_mark() {
  AddTree test;
  Problem problem;
  write_after_a_drain(test, problem, [&](Transaction& late) {
    test.open_window();
    return test.add_in(late, 5, 7);
  });
  const Status status = test.warm.cluster.worker(0).transaction->commit();
  problem.expect(status == Status::ok || is_abort(status), "commit");
  const std::string expected = status == Status::ok ? with_sum("new", 7) : "new";
  problem.expect(test.value_of(5) == expected, "a committed addition is lost");
  return problem.text();
}

/// R79: a look-up has found nothing in the delta tree and has read the snapshot. Then the record is
/// changed in the delta tree.
inline std::string absence_from_the_delta_tree_is_verified() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  problem.expect(test.write_both(1, 5, 900), Status::ok, "writing");  // sets the marks
  expect_no_commit(test, problem, 7, 901);
  return problem.text();
}

/// R79: scans see what the delta tree has, and not what it hides.
inline std::string scans_merge_the_delta_tree() {
  ColdTree test(2);
  Problem problem;
  const std::string done = test.prepare();
  problem.expect(done.empty(), done);
  problem.expect(test.write(1, 5, "new"), Status::ok, "writing");
  problem.expect(test.erase(1, 7), Status::ok, "erasing");
  problem.expect(test.scan(4, 9) == "old new old old ", "a scan forward finds " + test.scan(4, 9));
  problem.expect(test.scan(4, 9, false) == "old old new old ",
                 "a scan backward finds " + test.scan(4, 9, false));
  problem.expect(test.scan(0, 1000).size() == 999 * 4, "a scan misses records");
  return problem.text();
}

}  // namespace atolldb::test
