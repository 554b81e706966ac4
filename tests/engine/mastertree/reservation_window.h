// Absence of a key between its reservation and the read of its record (R13, R14). `reserve` is the
// first half of an insert or upsert: when it returns, the page is unlocked.
#pragma once

#include <string>

#include "engine/mastertree/tree_access.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// Worker a looks up a key or scans its range, and reserves the key. Then worker b commits the key,
/// and a continues its insert. Worker a must not commit.
inline std::string foreign_commit_of_a_reserved_key(bool by_scan, bool of_a_tombstone) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  constexpr uint64_t kOnlyKeyInRange = 30;  // the only existing key in the scanned range
  const uint64_t key = of_a_tombstone ? kOnlyKeyInRange : 33;
  if (of_a_tombstone) {
    stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, key); });
  }
  uint64_t found = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  if (by_scan) {
    problem.expect(stage.tree().scan(a, 25, 39, true, found), Status::ok, "scan");
    problem.expect(found == (of_a_tombstone ? 0u : 1u), "the scan found another number");
  } else {
    problem.expect(stage.tree().get(a, key, found), Status::not_found, "look-up");
  }
  Location location;
  problem.expect(reserve(a, stage.tree().tree().storage(), ordered_key(key), 8,
                         Reservation::dependent, location),
                 Status::ok, "reservation");
  stage.put_alone(Kind::tree, key, 77);
  Status status = stage.tree().put(a, key, 1);
  if (status == Status::ok) status = stage.array().put(a, 1, 1);
  problem.expect(finish(a, status) != Status::ok,
                 "a key that was absent for a was then another's, and a committed");
  return problem.text();
}

/// Worker a overwrites a record without reading it, worker b erases the record, and a scans the
/// range. The scan cannot show a's write, so a must not commit. `then_erases`: worker a erases the
/// key after the scan, instead of writing it.
inline std::string scan_of_an_own_blind_write_that_died(bool then_erases) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().put(a, 30, 1), Status::ok, "first write");
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  Status status = stage.tree().scan(a, 15, 45, true, count);
  if (status == Status::ok) {
    status = then_erases ? stage.tree().erase(a, 30) : stage.tree().put(a, 30, 2);
  }
  problem.expect(finish(a, status) != Status::ok || count == 3,
                 "a committed, and its scan missed its write");
  return problem.text();
}

/// R20: worker a overwrites a record without reading it, worker b erases the record, and a scans
/// the range. Then a reports a user abort, which must fail, whatever the scan answered.
inline std::string user_abort_after_a_scan_of_an_own_blind_write_that_died() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().put(a, 30, 1), Status::ok, "first write");
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  static_cast<void>(stage.tree().scan(a, 15, 45, true, count));
  problem.expect(a.commit_user_abort() != Status::ok,
                 "reported after a scan that missed its write");
  return problem.text();
}

/// Worker a increments a key, and worker b erases it. Worker b then reserves the key for an insert
/// and gives up. Worker a replaces its increment by a whole write, before or after b's steps.
inline std::string write_over_an_increment_of_a_key_that_died(bool before) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().add(a, 30, 1), Status::ok, "increment");
  if (before) problem.expect(stage.tree().put(a, 30, 7), Status::ok, "write");
  stage.commit_alone([&](Transaction& b) {
    const Status status = stage.tree().erase(b, 30);
    return status == Status::ok ? stage.array().put(b, 1, 5) : status;
  });
  problem.expect(stage.b().begin(), Status::ok, "begin of b");
  problem.expect(stage.tree().insert(stage.b(), 30, 99), Status::ok, "insert of b");
  stage.b().rollback(Status::read_conflict);
  uint64_t marker = 0;
  Status status = stage.array().get(a, 1, marker);
  problem.expect(marker == 5, "a does not see what b left");
  if (status == Status::ok && !before) status = stage.tree().put(a, 30, 7);
  problem.expect(finish(a, status) != Status::ok,
                 "a incremented what was there before b, saw what b left, and committed");
  return problem.text();
}

}  // namespace atolldb::test
