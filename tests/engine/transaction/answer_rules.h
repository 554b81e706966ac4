// Rules about results of operations, and about own writes, that no longer hold at the commit (R13,
// R14, R20, R33). Other transactions change what they rely on, or the transaction's own splits do.
// A body returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <atomic>
#include <string>

#include "engine/mastertree/cursor.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// The transaction's next operation on a record that it has incremented.
enum class After { upsert, update, erase, erase_at_cursor, read, user_abort };

/// R33: an increment answered "ok" because the record was long enough. Meanwhile another
/// transaction gives the record `foreign_bytes`, and sets a marker that shows it has committed.
inline std::string length_under_an_increment(After after, size_t foreign_bytes) {
  Stage stage;
  Problem problem;
  const MasterTree tree(stage.empty_tree("short"));
  const auto key = ordered_key(7);
  const std::string whole(16, '\1');
  const std::string foreign(foreign_bytes, '\2');
  const auto bytes_of = [](const std::string& text) {
    return bytes_view(text.data(), text.size());
  };
  stage.commit_alone([&](Transaction& b) { return tree.insert(b, key, bytes_of(whole)); });
  Transaction& a = stage.a();
  const uint64_t one = 1;
  uint64_t mark = 0;
  uint64_t value = 0;
  uint32_t length = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.increment(a, key, 8, IncrementType::u64, &one), Status::ok, "increment");
  stage.commit_alone([&](Transaction& b) {
    const Status status = tree.upsert(b, key, bytes_of(foreign));
    return status == Status::ok ? stage.array().put(b, 1, 5) : status;
  });
  problem.expect(stage.array().get(a, 1, mark), Status::ok, "read of the mark");
  problem.expect(mark == 5, "the mark is missing");
  Status status = Status::ok;
  MasterTreeCursor cursor(tree, a, {}, true);
  switch (after) {
    case After::upsert:
      status = tree.upsert(a, key, bytes_view("x", 1));
      break;
    case After::update:
      status = tree.update(a, key, bytes_view("x", 1));
      break;
    case After::erase:
      status = tree.erase(a, key);
      break;
    case After::erase_at_cursor:
      status = cursor.next();
      if (status == Status::ok) status = tree.erase(a, cursor.ref(), cursor.key());
      break;
    case After::read:
      status = tree.get(a, key, &value, 8, length);
      if (status == Status::ok) status = tree.erase(a, key);
      break;
    case After::user_abort:
      status = a.commit_user_abort();
      break;
  }
  if (after != After::user_abort) status = finish(a, status);
  if (foreign_bytes >= whole.size()) {
    problem.expect(status, Status::ok, "though the record is long enough");
  } else {
    problem.expect(is_abort(status) && status != Status::user_abort,
                   "saw what was before the other, and what was after it");
  }
  return problem.text();
}

/// There is no conflict if the record keeps its length, and a conflict if it becomes shorter.
inline std::string length_of_an_increment_is_verified(After after) {
  const std::string problem = length_under_an_increment(after, 16);
  return problem.empty() ? length_under_an_increment(after, 8) : problem;
}

/// R14: the writer plans a blind write of a living record. Another transaction, whose commit is
/// late, erases the record in the epoch before the writer's. A split by a third transaction then
/// elides the tombstone.
class ElidedOwnWrite {
 public:
  static constexpr uint64_t kKey = 100;

  ElidedOwnWrite() : cluster_(1, 3, options()), tree_(Kind::tree, make_tree()) {
    for (int i = 0; i < 20; ++i) cluster_.tick();
    run(1, [&](Transaction& txn) { return tree_.insert(txn, kKey, 1); });
    cluster_.worker(1).context->leave();
    for (int i = 0; i < 5; ++i) cluster_.tick();
    CHECK(writer().begin() == Status::ok);
    CHECK(tree_.put(writer(), kKey, 2) == Status::ok);
    std::atomic<uint64_t>& epoch = cluster_.view().control->epochs.current;
    const uint64_t now = epoch.load(std::memory_order_relaxed);
    epoch.store(now - 1, std::memory_order_seq_cst);
    run(1, [&](Transaction& txn) { return tree_.erase(txn, kKey); });
    cluster_.worker(1).context->leave();
    epoch.store(now, std::memory_order_seq_cst);
    cluster_.tick();
    cluster_.tick();
    for (uint64_t key = kKey + 1; key < kKey + 151; ++key) {
      run(2, [&](Transaction& txn) { return tree_.insert(txn, key, key); });
    }
    CHECK(cluster_.metrics(0, 2).splits.get() != 0);
  }

  Transaction& writer() { return *cluster_.worker(0).transaction; }
  const Table& tree() const { return tree_; }

 private:
  static TestClusterOptions options() {
    TestClusterOptions options{.clock = false};
    options.pool_bytes = uint64_t{16} << 20;
    return options;
  }
  StorageControl& make_tree() { return cluster_.create("tree", StorageType::mastertree, 8); }
  template <typename Body>
  void run(uint32_t worker, Body&& body) {
    CHECK(cluster_.worker(worker).run(body) == Status::ok);
  }
  TestCluster cluster_;
  Table tree_;
};

/// A look-up of the writer must report a conflict, not that the key is missing.
inline std::string look_up_of_an_own_write_that_was_elided() {
  ElidedOwnWrite stage;
  Problem problem;
  uint64_t value = 0;
  const Status status = stage.tree().get(stage.writer(), ElidedOwnWrite::kKey, value);
  problem.expect(status, Status::write_conflict, "look-up of the own write");
  problem.expect(finish(stage.writer(), status) != Status::ok, "the attempt has committed");
  return problem.text();
}

/// A scan of the writer meets no record that would reveal its own write. The attempt must still end
/// as a conflict, whatever the procedure concludes from the scan.
inline std::string scan_of_an_own_write_that_was_elided(bool user_abort) {
  ElidedOwnWrite stage;
  Problem problem;
  uint64_t count = 0;
  const uint64_t key = ElidedOwnWrite::kKey;
  problem.expect(stage.tree().scan(stage.writer(), key - 10, key + 1, true, count), Status::ok,
                 "scan");
  problem.expect(count == 0, "the record was not elided");
  const Status status =
      user_abort ? stage.writer().commit_user_abort() : finish(stage.writer(), Status::ok);
  problem.expect(status, user_abort ? Status::read_conflict : Status::write_conflict,
                 "the end of who missed its own write");
  return problem.text();
}

/// R14: a transaction writes to an old tombstone, which a split could elide. Then its own inserts
/// split the page. The split must keep the record.
inline std::string own_split_keeps_what_is_written() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  stage.b().worker().leave();
  stage.ticks(6);
  problem.expect(a.begin(), Status::ok, "begin");
  stage.ticks(2);
  Status status = stage.tree().insert(a, 30, 31);
  for (uint64_t key = 1000; key < 1200 && status == Status::ok; ++key) {
    status = stage.tree().insert(a, key, key);
  }
  problem.expect(stage.cluster().metrics(0, 0).splits.get() != 0, "the page was not split");
  // The page with the record is divided again, after the write was planned at another place.
  for (uint64_t key = 900; key > 600 && status == Status::ok; --key) {
    status = stage.tree().insert(a, key, key);
  }
  problem.expect(finish(a, status), Status::ok, "commit of an insert that own splits have moved");
  return problem.text();
}

/// R13: a transaction looks up the key of a tombstone, then inserts the key. The revival must not
/// count as a change by another transaction.
inline std::string look_up_of_an_erased_key_then_insert() {
  Stage stage;
  Problem problem;
  Transaction& a = stage.a();
  uint64_t value = 0;
  stage.commit_alone([&](Transaction& b) { return stage.tree().erase(b, 30); });
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(stage.tree().get(a, 30, value), Status::not_found, "look-up of an erased key");
  problem.expect(finish(a, stage.tree().insert(a, 30, 31)), Status::ok, "insert of the erased key");
  return problem.text();
}

/// R13: a look-up answers "not found". Then an own insert creates the layer that the key would go
/// into. From then on, the root of this layer covers the absence.
inline std::string own_layer_then_foreign_insert() {
  Stage stage;
  Problem problem;
  const MasterTree tree(stage.empty_tree("layers"));
  const auto insert = [&](Transaction& txn, const std::string& key) {
    return tree.insert(txn, bytes_view(key.data(), key.size()), {});
  };
  stage.commit_alone([&](Transaction& b) { return insert(b, "prefix01-one"); });
  Transaction& a = stage.a();
  const std::string absent = "prefix01-two";
  uint32_t length = 0;
  uint64_t mark = 0;
  problem.expect(a.begin(), Status::ok, "begin");
  problem.expect(tree.get(a, bytes_view(absent.data(), absent.size()), nullptr, 0, length),
                 Status::not_found, "look-up");
  problem.expect(insert(a, "prefix01-three"), Status::ok, "own insert");
  stage.commit_alone([&](Transaction& b) {
    const Status status = insert(b, absent);
    return status == Status::ok ? stage.array().put(b, 1, 5) : status;
  });
  problem.expect(stage.array().get(a, 1, mark), Status::ok, "read of the mark");
  problem.expect(mark == 5, "the mark is missing");
  problem.expect(finish(a, Status::ok), Status::phantom, "commit of who missed the insert");
  return problem.text();
}

}  // namespace atolldb::test
