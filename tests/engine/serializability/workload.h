// Random transactions over arrays and Master-trees, which record their reads and writes.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "engine/array/array.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "tests/engine/serializability/history.h"
#include "tests/support/test_cluster.h"

namespace atolldb::test {

struct WorkloadOptions {
  uint64_t seed = 1;
  uint64_t attempts = 1000;  // per worker
  uint32_t keys = 40;        // of each storage; few, so that transactions conflict
  bool increments = true;
  uint32_t lock_from_failures = HotRecords::Policy().lock_from_failures;
};

/// The storages of one workload. `array` and both trees hold values of writes. The counters hold
/// amounts that transfers move and whose sum is always zero.
struct WorkloadStorages {
  static constexpr uint32_t kCounters = 8;

  uint32_t array = 0;
  uint32_t tree = 0;     // keys: big-endian integers
  uint32_t layered = 0;  // keys with long common prefixes
  uint32_t counters = 0;
  uint32_t counter_tree = 0;

  static WorkloadStorages create(TestCluster& cluster, const WorkloadOptions& options);
};

/// Returns key number `index` of a layered tree. Keys ascend bytewise with the number.
std::string layered_key(uint32_t index);

/// One worker of the workload.
class WorkloadWorker {
 public:
  WorkloadWorker(const WorkloadOptions& options, const WorkloadStorages& storages, uint32_t index,
                 TestWorker& worker);

  /// Runs all attempts. Returns the first error that no interleaving can explain, or an empty text.
  std::string run();
  /// Runs one transaction that reads everything.
  std::string read_all();

  History& history() { return history_; }
  uint64_t commit_count() const { return commits_; }

 private:
  struct Own {
    uint64_t value;  // kAbsent: erased by this transaction
    size_t write;    // index in txn_.writes
  };
  enum class Store : uint32_t { array, tree, layered };

  // -- Steps of an attempt
  template <typename Body>
  void attempt(Body&& body);
  void finish(Status status);
  void record_committed(Status status);
  Status random_body();

  // -- Single operations
  Status operate(Store store);
  Status array_operation(uint32_t index);
  Status tree_operation(Store store, uint32_t index);
  Status array_get(uint32_t index, RecordRef* ref);
  Status array_get_many(uint32_t first);
  Status array_put(uint32_t index, const RecordRef* ref);
  Status tree_get(Store store, uint32_t index, bool& exists);
  Status tree_insert(Store store, uint32_t index);
  Status tree_write(Store store, uint32_t index);
  Status tree_update_in_place(Store store, uint32_t index);
  Status tree_erase(Store store, uint32_t index);
  Status scan(Store store, uint32_t low, uint32_t high, bool forward, uint32_t most);
  void visit(Store store, Bytes payload, uint32_t index);
  Status disturb_scan(Store store, const RecordRef& ref, uint32_t index, uint32_t low,
                      uint32_t high);
  Status transfer();
  Status audit();

  // -- Recording and checking
  uint64_t next_value(uint64_t key, bool erases);
  void saw(uint64_t key, uint64_t value, bool predicate);
  void complain(const std::string& text);
  uint64_t whole(uint64_t key, const uint64_t* words, size_t bytes);

  uint64_t key_of(Store store, uint32_t index) const {
    return (uint64_t{static_cast<uint32_t>(store) + 1} << 32) | index;
  }
  std::string tree_key(Store store, uint32_t index) const;
  uint32_t index_of(Store store, Bytes key) const;
  Array array_of(uint32_t id) const { return Array(control().storage(id)); }
  MasterTree tree_of(Store store) const {
    return MasterTree(control().storage(store == Store::tree ? storages_.tree : storages_.layered));
  }
  ControlSegment& control() const { return *worker_.context->view().control; }
  uint64_t below(uint64_t bound) { return random_() % bound; }

  WorkloadOptions options_;
  WorkloadStorages storages_;
  uint64_t name_;
  TestWorker& worker_;
  Transaction& engine_;
  std::mt19937_64 random_;
  std::vector<std::string> layered_keys_;
  History history_;
  HistoryTransaction txn_;
  std::map<uint64_t, Own> own_;
  std::string complaint_;      // error of this attempt; counts only if the attempt commits
  std::string torn_;           // counts even if the attempt aborts
  std::string first_problem_;  // first error over all attempts
  bool reads_only_ = false;
  uint64_t attempts_ = 0;
  uint64_t commits_ = 0;
};

}  // namespace atolldb::test
