// Stage for two transactions on two nodes that are interleaved by hand: every run takes the same
// steps.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "engine/array/array.h"
#include "engine/hooks/mutants.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// The first error text of a body. Empty: no error.
class Problem {
 public:
  void expect(bool right, const std::string& what) {
    if (!right && text_.empty()) text_ = what;
  }
  void expect(Status got, Status wanted, const std::string& what) {
    expect(got == wanted, what + ": got " + std::string(to_string(got)) + ", wanted " +
                              std::string(to_string(wanted)));
  }
  /// Expects one of two statuses.
  void expect_either(Status got, Status one, Status other, const std::string& what) {
    expect(got == one || got == other, what + ": got " + std::string(to_string(got)));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

enum class Kind { array, tree };

/// Returns whether the worker is the last one that holds the lock or waits for it.
inline bool is_last_waiter(const McsWord& lock, const WorkerContext& worker) {
  const LockCode waiter = lock.waiters.load(std::memory_order_acquire);
  if (waiter == 0 || waiter == kEarlyMark) return worker.holds(lock);
  return waiter == lock_code(worker.id());
}

inline Bytes bytes_view(const void* data, size_t bytes) {
  return {static_cast<const std::byte*>(data), bytes};
}

/// Numbers keyed by number, in an array or a Master-tree.
class Table {
 public:
  Table(Kind kind, StorageControl& storage) : kind_(kind), storage_(&storage) {}

  Status get(Transaction& txn, uint64_t key, uint64_t& value) const {
    if (kind_ == Kind::array) return Array(*storage_).get(txn, key, 0, sizeof(value), &value);
    uint32_t bytes = 0;
    return tree().get(txn, ordered_key(key), &value, sizeof(value), bytes);
  }
  /// Writes without reading. Only other writes of the same key can conflict with it.
  Status put(Transaction& txn, uint64_t key, uint64_t value) const {
    if (kind_ == Kind::array) return Array(*storage_).update(txn, key, 0, sizeof(value), &value);
    return tree().upsert(txn, ordered_key(key), bytes_view(&value, sizeof(value)));
  }
  Status insert(Transaction& txn, uint64_t key, uint64_t value) const {
    return tree().insert(txn, ordered_key(key), bytes_view(&value, sizeof(value)));
  }
  Status erase(Transaction& txn, uint64_t key) const { return tree().erase(txn, ordered_key(key)); }
  Status add(Transaction& txn, uint64_t key, uint64_t delta) const {
    if (kind_ == Kind::array) {
      return Array(*storage_).increment(txn, key, 0, IncrementType::u64, &delta);
    }
    return tree().increment(txn, ordered_key(key), 0, IncrementType::u64, &delta);
  }
  /// Finds the place of the record, and reads the record.
  Status find(Transaction& txn, uint64_t key, RecordRef& ref) const {
    uint64_t value = 0;
    if (kind_ == Kind::array) {
      return Array(*storage_).get_for_update(txn, key, 0, sizeof(value), &value, ref);
    }
    uint32_t bytes = 0;
    return tree().get_for_update(txn, ordered_key(key), &value, sizeof(value), bytes, ref);
  }
  /// Counts the keys in [low, high).
  Status scan(Transaction& txn, uint64_t low, uint64_t high, bool forward, uint64_t& count) const {
    const auto low_key = ordered_key(low);
    const auto high_key = ordered_key(high);
    const ScanRange range{.low = low_key, .has_low = true, .high = high_key, .has_high = true};
    MasterTreeCursor cursor(tree(), txn, range, forward);
    Status status = Status::ok;
    for (count = 0; (status = cursor.next()) == Status::ok;) ++count;
    return status == Status::end_of_scan ? Status::ok : status;
  }

  MasterTree tree() const { return MasterTree(*storage_); }
  Array array() const { return Array(*storage_); }
  StorageControl& storage() const { return *storage_; }
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
  StorageControl* storage_;
};

/// A cluster with workers `a` (node 0) and `b` (node 1), an array and a tree. The array has 100
/// records, the tree has the keys 0, 10 ... 90. The value of these ten keys is the key, in both
/// storages. Only `ticks` advances the epoch, so the engine removes no tombstone unexpectedly.
class Stage {
 public:
  static constexpr uint64_t kKeys = 100;

  explicit Stage(TestClusterOptions options = {.clock = false})
      : cluster_(2, 1, options),
        array_(Kind::array, cluster_.create("array", StorageType::array, 8, kKeys)),
        tree_(Kind::tree, cluster_.create("tree", StorageType::mastertree, 8)) {
    commit_alone([&](Transaction& txn) {
      Status status = Status::ok;
      for (uint64_t key = 0; key < kKeys && status == Status::ok; key += 10) {
        status = array_.put(txn, key, key);
        if (status == Status::ok) status = tree_.insert(txn, key, key);
      }
      return status;
    });
  }

  TestCluster& cluster() { return cluster_; }
  Transaction& a() { return *cluster_.worker(0).transaction; }
  Transaction& b() { return *cluster_.worker(1).transaction; }
  const Table& table(Kind kind) const { return kind == Kind::array ? array_ : tree_; }
  const Table& tree() const { return tree_; }
  const Table& array() const { return array_; }
  StorageControl& empty_tree(const std::string& name) {
    return cluster_.create(name, StorageType::mastertree, 8);
  }

  /// Runs a whole transaction of worker b, which must commit.
  template <typename Body>
  void commit_alone(Body&& body) {
    CHECK(b().begin() == Status::ok);
    CHECK(body(b()) == Status::ok);
    CHECK(b().commit() == Status::ok);
  }
  void put_alone(Kind kind, uint64_t key, uint64_t value) {
    commit_alone([&](Transaction& txn) { return table(kind).put(txn, key, value); });
  }
  /// Reads one number in a transaction of worker b.
  uint64_t value_of(Kind kind, uint64_t key) {
    uint64_t value = 0;
    commit_alone([&](Transaction& txn) { return table(kind).get(txn, key, value); });
    return value;
  }
  Vid vid_of(Kind kind, uint64_t key) {
    RecordRef ref;
    commit_alone([&](Transaction& txn) { return table(kind).find(txn, key, ref); });
    return ref.record->load_acquire();
  }
  void ticks(int count) {
    while (count-- > 0) cluster_.tick();
  }

 private:
  TestCluster cluster_;
  Table array_;
  Table tree_;
};

/// Ends an attempt, however its operations ended. `status` is that of the last operation.
inline Status finish(Transaction& txn, Status status) {
  if (status == Status::ok || !is_abort(status)) return txn.commit();
  txn.rollback(status);
  return status;
}

}  // namespace atolldb::test
