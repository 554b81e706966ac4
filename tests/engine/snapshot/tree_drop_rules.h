// What has to hold when a volatile page is dropped onto a snapshot (R1, R8), in interleavings that
// are the same in every run. Empty, or what went wrong.
#pragma once

#include <string>
#include <vector>

#include "tests/engine/at_seam.h"
#include "tests/engine/snapshot/warm_trees.h"

namespace atolldb::test {

/// A tree of several pages with the records 0 to 999, and a snapshot of it that is installed.
class DroppableTree {
 public:
  explicit DroppableTree(uint32_t workers) : warm(workers), tree(warm.storage) {}

  std::string fill() {
    const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
      for (uint64_t i = 0; i < kRecords; ++i) {
        const Status one = tree.insert(txn, bytes_of(big_endian(i)), bytes_of("old"));
        if (one != Status::ok) return one;
      }
      return Status::ok;
    });
    if (status != Status::ok) return "the inserts ended with " + std::string(to_string(status));
    warm.cluster.worker(0).context->leave();
    std::vector<GleanedLog> logs;
    const uint64_t epoch = warm.settle();
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back({LogType::insert, big_endian(i), 0, "old", Vid::make(epoch, 1)});
    }
    return warm.take(std::move(logs), epoch, 0);
  }
  Status write(uint32_t worker, uint64_t key, const std::string& value) {
    return warm.cluster.worker(worker).run([&](Transaction& txn) {
      return tree.update(txn, bytes_of(big_endian(key)), bytes_of(value));
    });
  }
  static Status read(Transaction& txn, const MasterTree& tree, uint64_t key, std::string& value) {
    return read_key(txn, tree, big_endian(key), value);
  }
  static Status read_key(Transaction& txn, const MasterTree& tree, const std::string& key,
                         std::string& value) {
    char buffer[8];
    uint32_t length = 0;
    const Status status = tree.get(txn, bytes_of(key), buffer, sizeof buffer, length);
    if (status == Status::ok) value.assign(buffer, length);
    return status;
  }
  std::string value_of(uint64_t key) {
    std::string value;
    const Status status =
        warm.cluster.worker(0).run([&](Transaction& txn) { return read(txn, tree, key, value); });
    return status == Status::ok ? value : std::string(to_string(status));
  }

  static constexpr uint64_t kRecords = 1000;
  WarmTree warm;
  MasterTree tree;
};

/// A page with a commit that is later than the snapshot stays.
inline std::string later_changes_stay() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  if (test.write(0, 500, "new") != Status::ok) return "no update";
  problem = test.warm.install(true);
  if (!problem.empty()) return problem;
  if (test.warm.report.dropped == 0) return "no page was dropped";
  return test.value_of(500) == "new" ? "" : "a commit was lost with its page";
}

/// Installs, and drops what it can, while a commit has verified, and is about to write.
inline std::string locked_records_stay() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  bool is_done = false;
  const AtSeams guard([&](Seam seam) {
    if (seam != Seam::verified || is_done) return;
    is_done = true;
    problem = test.warm.install(true);
  });
  if (test.write(0, 500, "new") != Status::ok) return "no update";
  if (!problem.empty()) return problem;
  if (!is_done || test.warm.report.dropped == 0) return "no page was dropped";
  return test.value_of(500) == "new" ? "" : "the commit wrote to a page that nobody finds";
}

/// A transaction reads below a null word; then the page comes, is changed, and goes again onto a
/// later snapshot: the word is null once more, but not the same.
inline std::string a_dropped_page_is_not_the_one_before() {
  DroppableTree test(2);
  std::string problem = test.fill();
  if (problem.empty()) problem = test.warm.install(true);
  if (!problem.empty()) return problem;
  Transaction& reader = *test.warm.cluster.worker(0).transaction;
  std::string value;
  if (reader.begin() != Status::ok) return "no transaction";
  if (DroppableTree::read(reader, test.tree, 500, value) != Status::ok || value != "old") {
    return "the snapshot's record is not read";
  }
  if (test.write(1, 500, "new") != Status::ok) return "no update";
  test.warm.cluster.worker(1).context->leave();
  const uint64_t epoch = test.warm.settle();
  problem =
      test.warm.take({{LogType::update, big_endian(500), 0, "new", Vid::make(epoch, 1)}}, epoch, 0);
  if (problem.empty()) problem = test.warm.install(true);
  if (!problem.empty()) return problem;
  if (test.warm.report.dropped == 0) return "no page was dropped";
  return is_abort(reader.commit()) ? "" : "a read of what was before the drop has passed";
}

}  // namespace atolldb::test
