// Rules of batches of a scan (MasterTreeCursor::next_many): they register the same as single steps
// (R11), and see own writes (R14). A body returns an error text, or an empty text if all is right.
// Every run takes the same steps.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "engine/mastertree/cursor.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// Takes one batch of at most `most` records of a tree of numbers, and appends their values.
inline Status take_values(MasterTreeCursor& cursor, size_t most, std::vector<uint64_t>& values) {
  std::vector<ScanRow> rows(most);
  std::vector<uint64_t> read(most);
  uint32_t count = 0;
  const Status status = cursor.next_many({.rows = rows,
                                          .payloads = std::as_writable_bytes(std::span(read)),
                                          .stride = sizeof(uint64_t)},
                                         count);
  values.insert(values.end(), read.begin(), read.begin() + count);
  return status;
}

inline std::string text_of_values(const std::vector<uint64_t>& values) {
  std::string text;
  for (const uint64_t value : values) text += std::to_string(value) + ' ';
  return text;
}

/// R11: the commit verifies each record of a batch, not only its first one.
inline std::string batch_then_foreign_write(uint64_t key) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  std::vector<uint64_t> values;
  problem.expect(a.begin(), Status::ok, "begin");
  MasterTreeCursor cursor(stage.tree().tree(), a, {}, true);
  problem.expect(take_values(cursor, 100, values), Status::ok, "batch");
  problem.expect(values.size() == 10, "the batch has " + text_of_values(values));
  stage.put_alone(Kind::tree, key, 1);
  problem.expect(stage.array().put(a, 1, 1), Status::ok, "write of another record");
  problem.expect(a.commit(), Status::read_conflict, "commit after a record of the batch changed");
  return problem.text();
}

/// R14: batches show own writes that were planned before.
inline std::string batches_see_own_writes(bool forward) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  std::vector<uint64_t> values;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().put(a, 30, 7), Status::ok, "overwrite");
  problem.expect(stage.tree().erase(a, 50), Status::ok, "erase");
  problem.expect(stage.tree().add(a, 60, 1), Status::ok, "increment");
  MasterTreeCursor cursor(stage.tree().tree(), a, {}, forward);
  Status status = Status::ok;
  while (status == Status::ok) status = take_values(cursor, 4, values);
  problem.expect(status, Status::end_of_scan, "end of the scan");
  const std::string wanted = forward ? "0 10 20 7 40 61 70 80 90 " : "90 80 70 61 40 7 20 10 0 ";
  problem.expect(text_of_values(values) == wanted, "the batches have " + text_of_values(values));
  problem.expect(a.commit(), Status::ok, "commit");
  return problem.text();
}

/// R14: the next batch shows own inserts ahead of the cursor.
inline std::string batches_see_own_inserts(bool forward) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  std::vector<uint64_t> values;
  problem.expect(a.begin(), Status::ok, "begin");
  MasterTreeCursor cursor(stage.tree().tree(), a, {}, forward);
  problem.expect(take_values(cursor, 3, values), Status::ok, "first batch");
  problem.expect(stage.tree().insert(a, 55, 5), Status::ok, "insert ahead of the cursor");
  Status status = Status::ok;
  while (status == Status::ok) status = take_values(cursor, 100, values);
  const std::string wanted =
      forward ? "0 10 20 30 40 50 5 60 70 80 90 " : "90 80 70 60 5 50 40 30 20 10 0 ";
  problem.expect(text_of_values(values) == wanted, "the batches have " + text_of_values(values));
  problem.expect(a.commit(), Status::ok, "commit");
  return problem.text();
}

/// R12: a tombstone of another transaction inside a batch is no record, and a key that is inserted
/// into the range of a batch is a phantom.
inline std::string batch_then_foreign_insert(bool forward) {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  std::vector<uint64_t> values;
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 40); });
  problem.expect(a.begin(), Status::ok, "begin");
  MasterTreeCursor cursor(stage.tree().tree(), a, {}, forward);
  problem.expect(take_values(cursor, 100, values), Status::ok, "batch");
  const std::string wanted = forward ? "0 10 20 30 50 60 70 80 90 " : "90 80 70 60 50 30 20 10 0 ";
  problem.expect(text_of_values(values) == wanted, "the batch has " + text_of_values(values));
  stage.commit_alone([&](Transaction& b) { return stage.tree().insert(b, 40, 1); });
  problem.expect(a.commit(), Status::phantom, "commit after an insert into the batch's range");
  return problem.text();
}

}  // namespace atolldb::test
