// Runs random transactions and records what they saw and did.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>

#include "engine/array/array.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "tests/engine/history/history.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// The storages of a random history; numbers of tables in its records.
struct HistoryTables {
  static constexpr uint32_t kArray = 0;
  static constexpr uint32_t kTree = 1;     // keys of one slice
  static constexpr uint32_t kLayered = 2;  // several keys a slice: next layers
  static constexpr uint32_t kCount = 3;

  explicit HistoryTables(StorageControl& array_storage, StorageControl& tree_storage,
                         StorageControl& layered_storage)
      : array(array_storage), trees{MasterTree(tree_storage), MasterTree(layered_storage)} {}

  const MasterTree& tree(uint32_t table) const { return trees[table - kTree]; }

  Array array;
  std::array<MasterTree, 2> trees;
};

class RandomWorker {
 public:
  RandomWorker(const HistoryTables& tables, uint32_t self, uint64_t seed, uint64_t key_count)
      : tables_(tables), self_(self), key_count_(key_count), random_(seed * 1000 + self) {}

  /// Empty, or what no serializable engine would do (an own write not seen, an odd answer).
  std::string run(TestWorker& worker, uint64_t transactions);

  const History& history() const { return history_; }

 private:
  Status attempt(Transaction& txn);
  Status operate(Transaction& txn);
  Status read(Transaction& txn, const Item& item, bool& found);
  Status write(Transaction& txn, const Item& item);
  Status insert(Transaction& txn, const Item& item);
  Status erase(Transaction& txn, const Item& item);
  Status scan(Transaction& txn, uint32_t table);
  Status scan_step(Transaction& txn, MasterTreeCursor& cursor, PredicateRead& predicate,
                   uint64_t& key);
  Status put_version(Transaction& txn, const Item& item, bool insert);
  void note_write(const Item& item, Version version, bool erases);
  void note_read(const Item& item, Version version);
  void check_own(const Item& item, Version version);
  void close_attempt(bool committed, bool reads_verified, const Transaction& txn);
  std::string key_of(const Item& item) const;
  uint64_t number_of(uint32_t table, Bytes key) const;
  Item random_item();
  void complain(const std::string& what) {
    if (attempt_problem_.empty()) attempt_problem_ = what;
  }

  const HistoryTables& tables_;
  uint32_t self_;
  uint64_t key_count_;
  std::mt19937_64 random_;
  uint64_t next_version_ = 1;
  uint64_t next_id_ = 0;
  History history_;
  // Of the attempt under way. `own_`: its last write of an item; kAbsent: erased.
  TransactionRecord record_;
  std::map<Item, Version> own_;
  std::string attempt_problem_;
  bool user_abort_ = false;
};

}  // namespace atolldb::test
