// Bodies of tests of packs (R101). A body returns an error text, or an empty text if all is right.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/hash/hash.h"
#include "engine/mastertree/inspect.h"
#include "engine/mastertree/pack.h"
#include "engine/mastertree/page_lock.h"
#include "engine/mastertree/tree_path.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// A hash storage without maintenance: the test runs no hints.
class UnpackedHash {
 public:
  /// If full pages are divided, these are on about eight pages, of which six suffice.
  static constexpr uint64_t kRecords = 150;

  UnpackedHash() : storage_(cluster_.create("unpacked", StorageType::hash)), hash_(storage_) {}

  TestWorker& worker(uint32_t index) { return cluster_.worker(index); }
  const Hash& hash() const { return hash_; }
  uint64_t retired_pages() { return cluster_.metrics(0, 0).pages_retired.get(); }
  /// Returns the number of divisions, and of spreads that need one page more.
  uint64_t splits() { return cluster_.metrics(0, 0).splits.get(); }

  /// Inserts kRecords records. Does not use `run`, which would run the hints.
  bool insert_all() {
    for (uint64_t number = 0; number < kRecords; ++number) {
      Transaction& txn = *worker(0).transaction;
      if (txn.begin() != Status::ok) return false;
      if (insert(txn, number) != Status::ok) return false;
      if (txn.commit() != Status::ok) return false;
    }
    return true;
  }
  Status insert(Transaction& txn, uint64_t number) {
    return hash_.insert(txn, ordered_key(number), bytes_of(payload_));
  }
  /// Inserts kRecords records, and divides all full pages.
  bool fill_without_spreads() {
    WorkerContext& other = *worker(1).context;
    {
      // The root stays a page that was divided, so no page has a parent, and spreads find none.
      ScopedLock root;
      const bool is_locked = root.try_lock(other, storage_.root_lock);
      if (!is_locked || !insert_all()) return false;
    }
    adopt_all();
    return true;
  }
  /// Lets parents adopt the successors of all divided pages, one level in each round.
  void adopt_all() {
    worker(0).context->enter();
    constexpr int kRounds = 8;
    for (int round = 0; round < kRounds; ++round) {
      for (uint64_t number = 0; number < kRecords; ++number) {
        find_border(*worker(0).context, storage_, root_link(storage_),
                    hash_of_key(ordered_key(number)), Adoption::whole_way);
      }
    }
  }
  /// Packs the pages around record 0. Returns whether pages were replaced.
  bool pack() {
    worker(0).context->enter();
    return pack_around(*worker(0).context, storage_, hash_of_key(ordered_key(0)));
  }
  Status spread(Transaction& txn, uint64_t number, uint32_t record_bytes) {
    return spread_around(txn, storage_, hash_of_key(ordered_key(number)), record_bytes);
  }
  TreeRecord* record(uint64_t number) {
    const HashKey key(ordered_key(number));
    return locate(*worker(0).context, storage_, key.stored()).record;
  }
  /// Returns the page of the first layer that holds the key, or would hold it.
  BorderPage* page_of(uint64_t number) {
    return find_border(*worker(0).context, storage_, root_link(storage_),
                       hash_of_key(ordered_key(number)))
        .page;
  }
  /// Returns the page above that page, or null.
  InteriorPage* parent_of(uint64_t number) {
    TreePath path;
    const uint64_t slice = hash_of_key(ordered_key(number));
    const bool is_found = find_path(*worker(0).context, root_link(storage_), slice, path);
    return is_found && path.size != 0 ? path.steps[path.size - 1].page : nullptr;
  }
  /// Returns an error text if the storage does not have each record once.
  std::string check() {
    TreeStatistics statistics;
    const std::string problem = check_tree(cluster_.view(), storage_, statistics);
    if (!problem.empty()) return problem;
    if (statistics.records != kRecords) return "there are not as many records as were inserted";
    for (uint64_t number = 0; number < kRecords; ++number) {
      if (record(number) == nullptr) return "a record is missing";
    }
    return {};
  }

 private:
  TestCluster cluster_{1, 2, {.clock = false}};
  StorageControl& storage_;
  Hash hash_;
  const std::string payload_ = std::string(100, 'p');
};

/// A commit may be about to write a record that it has locked. So a pack leaves the page.
inline std::string a_pack_leaves_locked_records() {
  UnpackedHash test;
  if (!test.fill_without_spreads()) return "an insert failed";
  {
    TreeRecord* const record = test.record(0);
    WorkerContext& other = *test.worker(1).context;
    ScopedLock lock;
    if (!lock.try_lock(other, record->head.lock)) {
      return "the record is locked";
    }
    if (test.pack()) return "a record was moved although another worker has locked it";
    if (test.record(0) != record) return "the record has another place";
  }
  if (!test.pack()) return "nothing was packed";
  return test.check();
}

/// A transaction has read and planned to write records, which a pack then moves. Its commit finds
/// all of them.
inline std::string a_commit_finds_packed_records() {
  UnpackedHash test;
  if (!test.fill_without_spreads()) return "an insert failed";
  const std::string value = "new value";
  Transaction& txn = *test.worker(1).transaction;
  if (txn.begin() != Status::ok) return "no transaction has begun";
  for (uint64_t number = 0; number < UnpackedHash::kRecords; ++number) {
    char buffer[100];
    uint32_t bytes = 0;
    const auto key = ordered_key(number);
    if (test.hash().get(txn, key, buffer, sizeof buffer, bytes) != Status::ok) return "no record";
    if (test.hash().update(txn, key, bytes_of(value)) != Status::ok) return "an update failed";
  }
  if (!test.pack()) return "nothing was packed";
  if (txn.commit() != Status::ok) return "the commit has not found a record that was moved";
  return test.check();
}

/// Keys that a transaction has read as absent, and the pages that would hold them.
class AbsentKeys {
 public:
  /// Reads the keys. Returns false if one of them exists.
  bool read(UnpackedHash& test, Transaction& txn) {
    for (uint64_t number = kFirst; number < kFirst + kKeys; ++number) {
      char buffer[1];
      uint32_t bytes = 0;
      const auto key = ordered_key(number);
      if (test.hash().get(txn, key, buffer, sizeof buffer, bytes) != Status::not_found)
        return false;
      pages_[number - kFirst] = test.page_of(number);
    }
    return true;
  }
  /// Returns the number of the last key, in the order of hashes, whose page was replaced; 0: none.
  uint64_t last_moved() const {
    uint64_t last = 0;
    for (uint64_t number = kFirst; number < kFirst + kKeys; ++number) {
      if (!pages_[number - kFirst]->header.version().is_moved()) continue;
      const bool is_later =
          last == 0 || hash_of_key(ordered_key(number)) > hash_of_key(ordered_key(last));
      if (is_later) last = number;
    }
    return last;
  }

 private:
  static constexpr uint64_t kFirst = 1'000'000;
  static constexpr uint64_t kKeys = 200;  // some for each page
  std::array<BorderPage*, kKeys> pages_{};
};

/// A transaction reads absent keys, and then inserts records until it spreads a page. It commits,
/// unless another transaction inserts one of the absent keys into a page of the spread.
inline std::string a_spread_keeps_the_absence_of_keys(bool is_inserted) {
  UnpackedHash test;
  if (!test.insert_all()) return "an insert failed";
  Transaction& txn = *test.worker(0).transaction;
  AbsentKeys absent;
  if (txn.begin() != Status::ok || !absent.read(test, txn)) return "a key is not absent";
  // A spread retires its pages and their parent.
  const uint64_t before = test.retired_pages();
  for (uint64_t number = UnpackedHash::kRecords; test.retired_pages() < before + 3; ++number) {
    if (number > 1000) return "no page was spread";
    if (test.insert(txn, number) != Status::ok) return "the transaction cannot insert";
  }
  const uint64_t moved = absent.last_moved();
  if (moved == 0) return "no absent key was in a page of the spread";
  if (!is_inserted) return txn.commit() == Status::ok ? "" : "the commit of a spread failed";
  Transaction& other = *test.worker(1).transaction;
  if (other.begin() != Status::ok || test.insert(other, moved) != Status::ok ||
      other.commit() != Status::ok) {
    return "the other transaction failed";
  }
  return is_abort(txn.commit()) ? "" : "a key that was read as absent has been inserted";
}

/// A transaction has read a null word in the parent of pages that it then fills. A spread would
/// freeze this word, and the commit would fail.
inline std::string a_spread_keeps_null_words_that_were_read() {
  UnpackedHash test;
  if (!test.insert_all()) return "an insert failed";
  Transaction& txn = *test.worker(0).transaction;
  if (txn.begin() != Status::ok) return "no transaction has begun";
  InteriorPage* const parent = test.parent_of(0);
  if (parent == nullptr) return "the pages have no parent";
  // As if the last page had been evicted. The test uses no key of its range.
  const uint32_t last = parent->find(~uint64_t{0}, parent->header.version().count());
  std::atomic<uint64_t>& word = parent->children[last].volatile_word;
  const uint64_t evicted = word.exchange(0, std::memory_order_relaxed);
  if (txn.register_pointer(&parent->children[last], 0) != Status::ok) return "the set is full";
  const uint64_t before = test.splits();
  for (uint64_t number = UnpackedHash::kRecords; test.splits() == before; ++number) {
    if (number > 1000) return "no page was divided";
    if (hash_of_key(ordered_key(number)) >= parent->separators[last]) continue;
    if (test.insert(txn, number) != Status::ok) return "the transaction cannot insert";
  }
  if (parent->header.version().is_moved()) return "the parent was replaced";
  const Status status = txn.commit();
  word.store(evicted, std::memory_order_relaxed);
  return status == Status::ok ? "" : "the transaction has ended its own attempt";
}

/// Another transaction may have made room since the page was found full. Then nothing is copied.
inline std::string a_spread_leaves_pages_with_room() {
  UnpackedHash test;
  if (!test.insert_all()) return "an insert failed";
  test.adopt_all();  // which retires pages
  constexpr uint32_t kRecordBytes = 120;
  Transaction& txn = *test.worker(0).transaction;
  if (txn.begin() != Status::ok) return "no transaction has begun";
  const uint64_t before = test.retired_pages();
  uint32_t found = 0;
  for (uint64_t number = 0; number < UnpackedHash::kRecords; ++number) {
    BorderPage* const page = test.page_of(number);
    if (!page->has_room(page->header.version().count(), kRecordBytes)) continue;
    ++found;
    if (test.spread(txn, number, kRecordBytes) != Status::ok) return "a spread failed";
  }
  if (found == 0) return "all pages are full";
  if (test.retired_pages() != before) return "pages were replaced for nothing";
  return txn.commit() == Status::ok ? test.check() : "the commit failed";
}

}  // namespace atolldb::test
