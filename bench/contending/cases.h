// The transactions of `atoll-contention`, on records that many workers want at the same time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "bench/common/random.h"
#include "bench/micro/local_cluster.h"
#include "bench/ycsb/zipfian.h"
#include "engine/mastertree/mastertree.h"

namespace atolldb::bench {

/// One kind of transaction. Records are in a Master-tree, and have kRowBytes bytes.
struct Case {
  std::string_view name;
  uint64_t rows;
  uint32_t reads;           // records that a transaction reads only
  uint32_t writes;          // records that it reads and writes, or increments
  double theta = 0;         // 0: all records are chosen as often; otherwise Zipf
  bool increments = false;  // with the call `increment`, which reads nothing
};

/// Returns the case of this name, or null.
const Case* find_case(std::string_view name);
/// Returns the names of all cases, with ", " between them.
std::string case_names();

inline constexpr uint32_t kRowBytes = 100;
/// Maximum number of records of a transaction.
inline constexpr uint32_t kMostRows = 32;

/// The records of one case, in a cluster of one node.
class Rows {
 public:
  Rows(const Case& its_case, uint32_t workers);

  LocalCluster& cluster() { return cluster_; }
  const Case& its_case() const { return case_; }
  /// Returns the sum of the counters of all records. Each write adds 1 to a counter.
  uint64_t sum();

 private:
  friend class Visitor;

  Case case_;
  LocalCluster cluster_;
  MasterTree tree_;
  ycsb::Zipfian zipfian_;
};

/// Draws and runs the transactions of one worker. Thread: the worker's.
class Visitor {
 public:
  Visitor(Rows& rows, uint64_t seed) : rows_(&rows), random_(seed) {}

  /// Chooses the records of the next transaction. No record occurs twice.
  void draw();
  /// The body of the transaction. Every attempt visits the same records in the same order.
  Status visit(Transaction& txn) const;

 private:
  Status read(Transaction& txn, uint64_t row) const;
  Status write(Transaction& txn, uint64_t row) const;

  Rows* rows_;
  Random random_;
  std::array<uint64_t, kMostRows> chosen_{};
};

}  // namespace atolldb::bench
