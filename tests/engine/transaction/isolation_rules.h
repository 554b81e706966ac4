// Bodies of tests of transactions that read a snapshot (R18). A body returns an error text, or an
// empty text if all is right.
#pragma once

#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "tests/engine/snapshot/cold_storages.h"
#include "tests/engine/transaction/anomaly_stage.h"

namespace atolldb::test {

/// A snapshot in which the records 0 ... kRecords - 1 are 0, and a cluster of two workers over it.
class IsolationStage {
 public:
  static constexpr uint64_t kRecords = 12;

  explicit IsolationStage(Kind kind)
      : stage_(kind == Kind::array ? StorageType::array : StorageType::mastertree, kRecords, 8) {
    stage_.storage.id = 1;
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back({kind == Kind::array ? LogType::update : LogType::insert, big_endian(i), 0,
                      std::string(8, '\0'), Vid::make(5, 1)});
    }
    CHECK(stage_.round(logs, {""}, 10).has_value());
    cold_ = std::make_unique<ColdCluster>(stage_, 2);
    table_ = std::make_unique<Table>(kind, cold_->storage);
  }

  const Table& table() const { return *table_; }
  ColdCluster& cold() { return *cold_; }
  Transaction& txn(uint32_t worker) { return *cold_->cluster.worker(worker).transaction; }
  Status begin(uint32_t worker, Isolation isolation) {
    return txn(worker).begin(kMaxEpoch, {isolation});
  }
  /// Withdraws the snapshot and publishes it again. In between, transactions find no snapshot.
  void withdraw_and_publish() {
    cold_->make_newest(0);
    cold_->published.withdraw_all_but({});
    cold_->publish_newest(ColdCluster::view_of(stage_, 1));
  }
  /// Commits a write of the second worker in the middle of the first worker's transaction.
  Status put_amid(uint64_t key, uint64_t value) {
    return cold_->run_amid([&](Transaction& own) { return table().put(own, key, value); });
  }

 private:
  SnapshotStage stage_;
  std::unique_ptr<ColdCluster> cold_;
  std::unique_ptr<Table> table_;
};

/// Another transaction writes a record after the snapshot. A transaction on the snapshot must not
/// write it.
inline std::string snapshot_write_of_a_changed_record(Kind kind, bool before_begin) {
  IsolationStage stage(kind);
  Problem problem;
  const Table& table = stage.table();
  if (before_begin) problem.expect(stage.put_amid(3, 30), Status::ok, "an earlier put");
  problem.expect(stage.begin(0, Isolation::snapshot), Status::ok, "begin");
  Transaction& txn = stage.txn(0);
  problem.expect(table.add(txn, 3, 1), Status::ok, "add");
  if (!before_begin) problem.expect(stage.put_amid(3, 30), Status::ok, "a put amid it");
  uint64_t value = 7;
  problem.expect(table.get(txn, 3, value), Status::ok, "get");
  problem.expect(value == 1, "it reads " + std::to_string(value) + " and not its own write");
  problem.expect(table.get(txn, 4, value), Status::ok, "get of another one");
  problem.expect(value == 0, "it does not read the snapshot");
  problem.expect(txn.commit(), Status::snapshot_conflict, "commit");
  return problem.text();
}

/// Reads record `key` and its version.
inline Status get_version(IsolationStage& stage, Kind kind, uint64_t key, uint64_t& value,
                          Vid& seen) {
  if (kind == Kind::array) return stage.table().array().get(stage.txn(0), key, &value, seen);
  uint32_t bytes = 0;
  return stage.table().tree().get(stage.txn(0), ordered_key(key), &value, sizeof value, bytes,
                                  seen);
}

/// A read of an own write returns the new value with the version of the snapshot's record.
inline std::string own_writes_have_the_snapshots_version(Kind kind) {
  IsolationStage stage(kind);
  Problem problem;
  problem.expect(stage.begin(0, Isolation::snapshot), Status::ok, "begin");
  Transaction& txn = stage.txn(0);
  uint64_t value_before = 7;
  Vid before;
  problem.expect(get_version(stage, kind, 3, value_before, before), Status::ok, "get");
  const uint64_t stored = before.version();
  problem.expect(stored != 0, "the snapshot's record has no version");
  const auto expect = [&](uint64_t key, uint64_t wanted_value, uint64_t wanted_version,
                          const std::string& what) {
    uint64_t value = 7;
    Vid seen = Vid::make(99, 1);
    problem.expect(get_version(stage, kind, key, value, seen), Status::ok, what);
    problem.expect(value == wanted_value, what + " reads " + std::to_string(value));
    problem.expect(seen.version() == wanted_version,
                   what + " has the version " + std::to_string(seen.version()));
  };
  problem.expect(stage.table().put(txn, 3, 30), Status::ok, "put");
  expect(3, 30, stored, "an own put");
  problem.expect(stage.table().add(txn, 4, 2), Status::ok, "add");
  expect(4, 2, stored, "an own increment");
  if (kind == Kind::tree) {
    problem.expect(stage.table().insert(txn, 100, 5), Status::ok, "insert");
    expect(100, 5, 0, "an own insert");
    problem.expect(stage.table().erase(txn, 3), Status::ok, "erase");
    uint64_t value = 7;
    Vid seen;
    problem.expect(get_version(stage, kind, 3, value, seen), Status::not_found, "after an erase");
    problem.expect(stage.table().insert(txn, 3, 31), Status::ok, "insert after an erase");
    expect(3, 31, stored, "an own insert after an erase");
  }
  txn.rollback(Status::user_abort);
  return problem.text();
}

/// A record is erased after the snapshot, and its page elides the tombstone. Only the newest
/// removed version of the page shows that the key has changed.
inline std::string snapshot_write_of_a_key_that_was_elided() {
  IsolationStage stage(Kind::tree);
  Problem problem;
  const Table& table = stage.table();
  for (uint64_t key = 0; key + 2 < IsolationStage::kRecords; ++key) {
    problem.expect(stage.cold().run_amid([&](Transaction& own) { return table.erase(own, key); }),
                   Status::ok, "erase");
  }
  // Runs empty transactions until the hint is due and the page is compacted.
  const WorkerMetrics& metrics = stage.cold().cluster.metrics(0, 1);
  while (metrics.compactions.get() == 0) {
    problem.expect(stage.cold().run_amid([](Transaction&) { return Status::ok; }), Status::ok,
                   "a transaction that does nothing");
    std::this_thread::yield();
  }
  problem.expect(stage.begin(0, Isolation::snapshot), Status::ok, "begin");
  Transaction& txn = stage.txn(0);
  uint64_t value = 7;
  problem.expect(table.get(txn, 3, value), Status::ok, "get");
  problem.expect(table.add(txn, 3, 1), Status::ok, "add");
  problem.expect(txn.commit(), Status::snapshot_conflict, "commit");
  return problem.text();
}

/// R10: a record that another transaction has reserved and not written causes no conflict.
inline std::string snapshot_write_of_a_reserved_record() {
  IsolationStage stage(Kind::tree);
  Problem problem;
  const Table& table = stage.table();
  problem.expect(stage.cold().run_amid([&](Transaction& own) {
    const Status status = table.insert(own, 100, 1);
    return status == Status::ok ? Status::user_abort : status;
  }),
                 Status::user_abort, "an insert that is given up");
  problem.expect(stage.begin(0, Isolation::snapshot), Status::ok, "begin");
  problem.expect(table.insert(stage.txn(0), 100, 2), Status::ok, "insert");
  problem.expect(stage.txn(0).commit(), Status::ok, "commit");
  // Two commits of the same key: the second one's snapshot does not have the first commit.
  problem.expect(stage.begin(0, Isolation::snapshot), Status::ok, "begin");
  problem.expect(table.insert(stage.txn(0), 100, 3), Status::ok, "the key is not in the snapshot");
  problem.expect(stage.txn(0).commit(), Status::snapshot_conflict, "commit");
  return problem.text();
}

/// A read-only transaction sees no commit after the snapshot.
inline std::string snapshot_readers_see_no_later_commit(Kind kind) {
  IsolationStage stage(kind);
  Problem problem;
  problem.expect(stage.put_amid(3, 30), Status::ok, "put");
  problem.expect(stage.begin(0, Isolation::snapshot_read_only), Status::ok, "begin");
  Transaction& txn = stage.txn(0);
  uint64_t value = 7;
  problem.expect(stage.table().get(txn, 3, value), Status::ok, "get");
  problem.expect(value == 0, "it reads a later commit");
  problem.expect(stage.table().put(txn, 3, 1), Status::read_only_transaction, "put");
  problem.expect(txn.commit(), Status::ok, "commit");
  problem.expect(txn.commit_epoch() == 0, "it depends on a commit");
  return problem.text();
}

/// Each of two transactions writes a record that the other has read. Under `snapshot` both commit.
inline std::string write_skew_under(Isolation isolation) {
  IsolationStage stage(Kind::tree);
  Problem problem;
  // Creates volatile pages, so that no look-up depends on the absence of a page.
  problem.expect(stage.put_amid(5, 0), Status::ok, "a put before");
  uint64_t value = 0;
  for (const uint32_t worker : {0u, 1u}) {
    problem.expect(stage.begin(worker, isolation), Status::ok, "begin");
    problem.expect(stage.table().get(stage.txn(worker), worker, value), Status::ok, "get");
    problem.expect(stage.table().put(stage.txn(worker), 1 - worker, 1), Status::ok, "put");
    stage.cold().cluster.worker(worker).snapshots->leave();
  }
  const Status first = stage.txn(0).commit();
  const Status second = stage.txn(1).commit();
  const bool both = first == Status::ok && second == Status::ok;
  problem.expect(both == (isolation == Isolation::snapshot),
                 "the commits answer " + std::string(to_string(first)) + " and " +
                     std::string(to_string(second)));
  return problem.text();
}

/// R18, R38: the snapshot that a running transaction reads is announced, and stays readable after
/// it is withdrawn.
inline std::string a_snapshot_that_is_read_is_announced() {
  IsolationStage stage(Kind::tree);
  Problem problem;
  PublishedSnapshots& published = stage.cold().published;
  NodeShared& node = *stage.cold().cluster.view().shared[0];
  const auto in_use = [&] {
    std::set<uint32_t> ids;
    snapshots_in_use(node, ids);
    return ids;
  };
  const uint32_t id = published.newest();
  problem.expect(stage.begin(0, Isolation::snapshot_read_only), Status::ok, "begin");
  problem.expect(in_use() == std::set<uint32_t>{id}, "the slot does not name the snapshot");
  if (!problem.text().empty()) {
    stage.txn(0).rollback(Status::user_abort);
    return problem.text();
  }
  stage.cold().make_newest(0);
  published.withdraw_all_but({});
  problem.expect(stage.begin(1, Isolation::snapshot_read_only), Status::snapshot_not_found,
                 "begin after it was withdrawn");
  problem.expect(in_use() == std::set<uint32_t>{id}, "a failed begin names a snapshot");
  uint64_t value = 7;
  problem.expect(stage.table().get(stage.txn(0), 3, value), Status::ok, "get");
  problem.expect(stage.txn(0).commit(), Status::ok, "commit");
  problem.expect(in_use().empty(), "the slot names a snapshot that is not read any more");
  return problem.text();
}

/// Two threads move amounts between records. One of them uses snapshots, and reads between its
/// writes. A third thread withdraws the snapshot and publishes it again. No amount may be lost.
inline std::string transfers_keep_the_sum(Kind kind, uint64_t transactions) {
  IsolationStage stage(kind);
  const Table& table = stage.table();
  constexpr uint64_t kRecords = IsolationStage::kRecords;
  const auto sum_of = [&](Transaction& txn, uint64_t& sum, bool& are_zero) {
    sum = 0;
    are_zero = true;
    for (uint64_t key = 0; key < kRecords; ++key) {
      uint64_t value = 0;
      const Status status = table.get(txn, key, value);
      if (status != Status::ok) return status;
      sum += value;
      are_zero = are_zero && value == 0;
    }
    return Status::ok;
  };
  const auto move = [&](Transaction& txn, uint64_t choice) {
    const uint64_t from = choice % kRecords;
    const uint64_t to = choice / kRecords % kRecords;
    uint64_t values[2] = {};
    Status status = table.get(txn, from, values[0]);
    if (status == Status::ok) status = table.put(txn, from, values[0] - 1);
    if (status == Status::ok) status = table.get(txn, to, values[1]);
    return status == Status::ok ? table.put(txn, to, values[1] + 1) : status;
  };
  std::string problems[2];
  {
    std::jthread publisher([&](const std::stop_token& stop) {
      while (!stop.stop_requested()) stage.withdraw_and_publish();
    });
    const uint64_t first = seed();
    stage.cold().cluster.run_threads([&](uint32_t index, TestWorker& worker) {
      std::mt19937_64 random(first + index);
      for (uint64_t i = 0; i < transactions && problems[index].empty(); ++i) {
        const bool only_reads = index == 0 && i % 2 == 0;
        const Isolation isolation = index == 1   ? Isolation::serializable
                                    : only_reads ? Isolation::snapshot_read_only
                                                 : Isolation::snapshot;
        bool are_zero = true;
        const auto body = [&](Transaction& txn) {
          uint64_t sum = 0;
          return only_reads ? sum_of(txn, sum, are_zero) : move(txn, random());
        };
        const Status status =
            run(*worker.transaction, worker.backoff, kMaxEpoch, body, {isolation});
        const bool is_expected =
            status == Status::ok || (index == 0 && status == Status::snapshot_not_found) ||
            (isolation == Isolation::snapshot && status == Status::snapshot_conflict);
        if (!is_expected) problems[index] = "it ended with " + std::string(to_string(status));
        if (!are_zero) problems[index] = "the snapshot has changed";
      }
    });
  }
  Problem problem;
  problem.expect(problems[0].empty(), "on snapshots: " + problems[0]);
  problem.expect(problems[1].empty(), "serializable: " + problems[1]);
  uint64_t sum = 0;
  bool are_zero = true;
  problem.expect(
      stage.cold().run_amid([&](Transaction& txn) { return sum_of(txn, sum, are_zero); }),
      Status::ok, "the last look");
  problem.expect(sum == 0, "an amount was lost");
  return problem.text();
}

}  // namespace atolldb::test
