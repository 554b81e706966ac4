// Bodies of tests of packs (R101). A body returns an error text, or an empty text if all is right.
#pragma once

#include <cstdint>
#include <string>

#include "engine/hash/hash.h"
#include "engine/mastertree/inspect.h"
#include "engine/mastertree/pack.h"
#include "engine/mastertree/page_lock.h"
#include "tests/engine/mastertree/oracle.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

/// A hash storage whose divided pages were not packed, because no hint has run.
class UnpackedHash {
 public:
  /// These are on about eight pages, of which six suffice.
  static constexpr uint64_t kRecords = 150;

  UnpackedHash() : storage_(cluster_.create("unpacked", StorageType::hash)), hash_(storage_) {}

  TestWorker& worker(uint32_t index) { return cluster_.worker(index); }
  const Hash& hash() const { return hash_; }

  /// Inserts kRecords records. Does not use `run`, which would run the hints.
  bool fill() {
    for (uint64_t number = 0; number < kRecords; ++number) {
      Transaction& txn = *worker(0).transaction;
      if (txn.begin() != Status::ok) return false;
      if (hash_.insert(txn, ordered_key(number), bytes_of(payload_)) != Status::ok) return false;
      if (txn.commit() != Status::ok) return false;
    }
    // Parents adopt the successors of all divided pages.
    worker(0).context->enter();
    for (uint64_t number = 0; number < kRecords; ++number) {
      find_border(*worker(0).context, storage_, root_link(storage_),
                  hash_of_key(ordered_key(number)), Adoption::whole_way);
    }
    return true;
  }
  /// Packs the pages around record 0. Returns whether pages were replaced.
  bool pack() {
    worker(0).context->enter();
    return pack_around(*worker(0).context, storage_, hash_of_key(ordered_key(0)));
  }
  TreeRecord* record(uint64_t number) {
    const HashKey key(ordered_key(number));
    return locate(*worker(0).context, storage_, key.stored()).record;
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
  if (!test.fill()) return "an insert failed";
  {
    TreeRecord* const record = test.record(0);
    WorkerContext& other = *test.worker(1).context;
    ScopedLock lock;
    if (!lock.try_lock(other, record->head.lock, kFirstRecordBlock, other.name_of(record))) {
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
  if (!test.fill()) return "an insert failed";
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

}  // namespace atolldb::test
