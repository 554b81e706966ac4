// Bodies of tests that drop volatile pages together with the page above them, because the snapshot
// has no pages of their ranges (R71), in fixed interleavings. A body returns an error text, or an
// empty text if all is right.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/mastertree/inspect.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

/// A tree with one next layer of several pages. The snapshot holds all its records, but it has no
/// page of the range of the layer's last page: that page was split by inserts that were aborted,
/// and no log record tells of them.
class UnmatchedPage {
 public:
  UnmatchedPage() : warm(1), tree(warm.storage) {}

  static std::string key(uint64_t number) { return "a layer:" + big_endian(number); }

  /// Fills the tree, takes a snapshot, and splits the last page.
  std::string fill() {
    std::string problem = insert(0, kRecords, true);
    if (!problem.empty()) return problem;
    const uint64_t epoch = warm.settle();
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < kRecords; ++i) {
      logs.push_back({LogType::insert, key(i), 0, "old", Vid::make(epoch, 1)});
    }
    problem = warm.take(std::move(logs), epoch, 0);
    if (problem.empty()) problem = insert(kRecords, 2 * kRecords, false);
    // The installer removes the reserved records, and the pages that they leave empty. Only the
    // last of these snapshots has the epoch of the removed reservations (R43).
    for (int round = 0; round < 2 && problem.empty(); ++round) {
      problem = warm.take({}, warm.settle(), 0);
      if (problem.empty()) problem = warm.install(keep_all);
    }
    return problem;
  }
  /// Installs snapshots without changes until the tree is as small as they make it.
  std::string install(TreeStatistics& statistics) {
    for (int round = 0; round < 5; ++round) {
      std::string problem = warm.install(drop_all);
      if (problem.empty()) problem = warm.take({}, warm.settle(), 0);
      if (!problem.empty()) return problem;
    }
    statistics = {};
    return warm.check(statistics);
  }
  Status update_last(const std::string& value) {
    const Status status = warm.cluster.worker(0).run([&](Transaction& txn) {
      return tree.update(txn, bytes_of(key(kRecords - 1)), bytes_of(value));
    });
    warm.cluster.worker(0).context->leave();
    return status;
  }
  std::string value_of(uint64_t number) {
    std::string value;
    const Status status = warm.cluster.worker(0).run(
        [&](Transaction& txn) { return DroppableTree::read_key(txn, tree, key(number), value); });
    warm.cluster.worker(0).context->leave();
    return status == Status::ok ? value : std::string(to_string(status));
  }

  static constexpr uint64_t kRecords = 400;
  WarmTree warm;
  MasterTree tree;

 private:
  std::string insert(uint64_t from, uint64_t to, bool commits) {
    Transaction& txn = *warm.cluster.worker(0).transaction;
    Status status = txn.begin();
    for (uint64_t i = from; i < to && status == Status::ok; ++i) {
      status = tree.insert(txn, bytes_of(key(i)), bytes_of("old"));
    }
    if (status == Status::ok && commits) status = txn.commit();
    if (!commits) txn.rollback(Status::user_abort);
    warm.cluster.worker(0).context->leave();
    return status == Status::ok ? "" : "inserts ended with " + std::string(to_string(status));
  }
};

/// The page without a snapshot page is dropped together with the page above it.
inline std::string unmatched_pages_are_dropped() {
  UnmatchedPage test;
  std::string problem = test.fill();
  TreeStatistics statistics;
  if (problem.empty()) problem = test.install(statistics);
  if (!problem.empty()) return problem;
  if (statistics.pages() != 1) {  // the root of the tree stays
    return std::to_string(statistics.pages()) + " pages are left";
  }
  for (const uint64_t number : {uint64_t{0}, UnmatchedPage::kRecords - 1}) {
    if (test.value_of(number) != "old") return "a record has changed with the drops";
  }
  return test.value_of(UnmatchedPage::kRecords) == "not_found" ? "" : "an aborted insert is found";
}

/// A commit that is newer than the snapshot keeps the page, and the page above it.
inline std::string changed_unmatched_pages_are_kept() {
  UnmatchedPage test;
  std::string problem = test.fill();
  if (problem.empty() && test.update_last("new") != Status::ok) problem = "no update";
  if (problem.empty()) problem = test.warm.install(drop_all);
  if (!problem.empty()) return problem;
  if (test.warm.report.dropped == 0) return "no page was dropped";
  const std::string value = test.value_of(UnmatchedPage::kRecords - 1);
  return value == "new" ? "" : "a commit was lost with its page";
}

/// An installation runs while a commit has verified and is about to write to the page.
inline std::string locked_unmatched_pages_are_kept() {
  UnmatchedPage test;
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  bool is_done = false;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::verified || is_done) return;
      is_done = true;
      problem = test.warm.install(drop_all);
    });
    if (test.update_last("new") != Status::ok) return "no update";
  }
  if (!problem.empty()) return problem;
  if (!is_done || test.warm.report.dropped == 0) return "no page was dropped";
  const std::string value = test.value_of(UnmatchedPage::kRecords - 1);
  return value == "new" ? "" : "the commit wrote to a page that no reader finds";
}

}  // namespace atolldb::test
