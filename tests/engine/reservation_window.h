// What covers the absence of a key between its reservation and the read of its record (R13, R14).
// `reserve` is the first half of an insert or upsert: the page is unlocked when it returns.
#pragma once

#include <string>

#include "engine/mastertree/reserve.h"
#include "tests/engine/anomaly_stage.h"

namespace atolldb::test {

/// A looks a key up or scans, and reserves it; then b commits it; then a goes on with its insert.
inline std::string foreign_commit_of_a_reserved_key(bool by_scan, bool of_a_dead_record) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  constexpr uint64_t kOnlyKeyInRange = 30;  // of those that the scan passes
  const uint64_t key = of_a_dead_record ? kOnlyKeyInRange : 33;
  if (of_a_dead_record) {
    stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, key); });
  }
  uint64_t found = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  if (by_scan) {
    problem.expect(stage.tree().scan(a, 25, 39, true, found), Status::ok, "scan");
    problem.expect(found == (of_a_dead_record ? 0u : 1u), "the scan found another number");
  } else {
    problem.expect(stage.tree().get(a, key, found), Status::not_found, "look-up");
  }
  Location location;
  problem.expect(reserve(a, stage.tree().tree().storage(), ordered_key(key), 8, location),
                 Status::ok, "reservation");
  stage.put_alone(Kind::tree, key, 77);
  Status status = stage.tree().put(a, key, 1);
  if (status == Status::ok) status = stage.array().put(a, 1, 1);
  problem.expect(finish(a, status) != Status::ok,
                 "a key that was absent for a was then another's, and a committed");
  return problem.text();
}

/// A overwrites a record without reading it, b erases it, a scans and writes it again.
inline std::string scan_between_erase_and_second_blind_write() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t count = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().put(a, 30, 1), Status::ok, "first write");
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  problem.expect(stage.tree().scan(a, 15, 45, true, count), Status::ok, "scan");
  const Status status = finish(a, stage.tree().put(a, 30, 2));
  problem.expect(status != Status::ok || count == 3, "a committed, and its scan missed its write");
  return problem.text();
}

}  // namespace atolldb::test
