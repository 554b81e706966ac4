// A tree whose records are in a snapshot only, and whose changes go to a delta tree.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/install/install.h"
#include "engine/mastertree/cursor.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

inline void use_delta_trees(WarmTree& warm) {
  warm.storage.uses_delta.store(1, std::memory_order_relaxed);
}

/// A tree whose records are all in a snapshot only. Writes to them go to the delta tree.
class ColdTree : public DroppableTree {
 public:
  explicit ColdTree(uint32_t workers, uint32_t frames = 32) : DroppableTree(workers, frames) {}

  std::string prepare() {
    std::string problem = fill();
    if (problem.empty()) problem = warm.install(drop_all);
    TreeStatistics statistics;
    if (problem.empty()) problem = warm.check(statistics);
    if (problem.empty() && statistics.border_pages != 0) return "not all border pages were dropped";
    use_delta_trees(warm);
    return problem;
  }
  /// Makes a tree of three levels. Its border pages are dropped, apart from a few at its end.
  std::string prepare_large() {
    constexpr uint64_t kManyRecords = 30'000;
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kManyRecords; ++i) {
      const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
        return tree.insert(txn, bytes_of(big_endian(i)), bytes_of("old"));
      });
      if (status != Status::ok) return "an insert ended with " + std::string(to_string(status));
    }
    warm.cluster.worker(0).context->leave();
    const uint64_t epoch = warm.settle();
    for (uint64_t i = 0; i < kManyRecords; ++i) {
      logs.push_back({LogType::insert, big_endian(i), 0, "old", Vid::make(epoch, 1)});
    }
    std::string problem = warm.take(std::move(logs), epoch, 0);
    if (problem.empty()) {
      problem = warm.install(
          [](PageHeader& page) { return page.level == 0 ? DropVerdict::drop : DropVerdict::keep; });
    }
    TreeStatistics statistics;
    if (problem.empty()) problem = warm.check(statistics);
    // Pages of the newest records stay: their splits are adopted only by the install.
    if (problem.empty() && statistics.border_pages > 50) return "few border pages were dropped";
    if (problem.empty() && statistics.interior_pages < 3) return "the tree has too few levels";
    use_delta_trees(warm);
    return problem;
  }
  Status erase(uint32_t worker, uint64_t key) {
    return warm.cluster.worker(worker).run(
        [&](Transaction& txn) { return tree.erase(txn, bytes_of(big_endian(key))); });
  }
  /// Writes "new" to both records in one transaction.
  Status write_both(uint32_t worker, uint64_t one, uint64_t other) {
    return warm.cluster.worker(worker).run([&](Transaction& txn) {
      const Status status = tree.update(txn, bytes_of(big_endian(one)), bytes_of("new"));
      return status == Status::ok ? tree.update(txn, bytes_of(big_endian(other)), bytes_of("new"))
                                  : status;
    });
  }
  /// Takes a snapshot of these changes, which the delta tree has.
  std::string take(const std::vector<std::pair<uint64_t, std::string>>& changes) {
    for (uint32_t i = 0; i < 2 && i < workers(); ++i) warm.cluster.worker(i).context->leave();
    return take_beside_readers(changes);
  }
  std::string take_beside_readers(const std::vector<std::pair<uint64_t, std::string>>& changes) {
    const uint64_t epoch = warm.settle();
    std::vector<GleanedLog> logs;
    for (const auto& [key, value] : changes) {
      logs.push_back({LogType::insert, big_endian(key), 0, value, Vid::make(epoch, 1)});
    }
    return warm.take(std::move(logs), epoch, 0);
  }
  /// Returns the values of the records [first, last), each followed by a space.
  std::string scan(uint64_t first, uint64_t last, bool forward = true) {
    std::string values;
    const Status status = warm.cluster.worker(0).run(
        [&](Transaction& txn) { return scan(txn, first, last, forward, values); });
    return status == Status::ok ? values : std::string(to_string(status));
  }
  /// Scans in the caller's transaction, and does not end it.
  std::string scan_in(Transaction& txn, uint64_t first, uint64_t last, bool forward = true) {
    std::string values;
    const Status status = scan(txn, first, last, forward, values);
    return status == Status::ok ? values : std::string(to_string(status));
  }
  uint64_t delta_records() {
    TreeStatistics statistics;
    const std::string problem = warm.check(statistics);
    return problem.empty() ? statistics.delta_records : ~uint64_t{0};
  }
  uint32_t workers() const { return 2; }

 private:
  Status scan(Transaction& txn, uint64_t first, uint64_t last, bool forward, std::string& values) {
    values.clear();
    const std::string low = big_endian(first);
    const std::string high = big_endian(last);
    MasterTreeCursor cursor(
        tree, txn,
        {.low = bytes_of(low), .has_low = true, .high = bytes_of(high), .has_high = true}, forward);
    Status one = cursor.next();
    for (; one == Status::ok; one = cursor.next()) {
      char buffer[8];
      one = cursor.get(buffer, sizeof buffer);
      if (one != Status::ok) return one;
      values += std::string(buffer, cursor.payload_bytes()) + ' ';
    }
    return one == Status::end_of_scan ? Status::ok : one;
  }
};

}  // namespace atolldb::test
