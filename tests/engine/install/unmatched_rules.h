// Bodies of tests of volatile pages without a snapshot page for their range. Such pages are dropped
// together with the page above them (R71). The interleavings are fixed. A body returns an error
// text, or an empty text if all is right.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/mastertree/inspect.h"
#include "engine/mastertree/tree_path.h"
#include "shared/base/check.h"
#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/droppable_tree.h"
#include "tests/engine/install/tree_drop_rules.h"

namespace atolldb::test {

/// A tree with one next layer of several pages. The snapshot holds all its records, but has no page
/// for the range of the last page of the layer. That page was split by inserts that were aborted,
/// and aborted inserts leave no log records.
class UnmatchedPage {
 public:
  explicit UnmatchedPage(bool has_lower_layer = false)
      : warm(1), tree(warm.storage), has_lower_layer_(has_lower_layer) {}

  static std::string key(uint64_t number) { return "a layer:" + big_endian(number); }

  /// Fills the tree, takes a snapshot, and splits the last page. Damages the snapshot page `bad`,
  /// unless it is null, before it is read.
  std::string fill(SnapshotPointer bad = {}) {
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < kRecords; ++i) keys.push_back(key(i));
    for (const char* rest : {"x", "y"}) {
      if (has_lower_layer_) keys.push_back(key(kRecords - 2) + rest);
    }
    std::string problem = insert(keys, true);
    if (!problem.empty()) return problem;
    const uint64_t epoch = warm.settle();
    std::vector<GleanedLog> logs;
    for (const std::string& each : keys) {
      logs.push_back({LogType::insert, each, 0, "old", Vid::make(epoch, 1)});
    }
    problem = warm.take(std::move(logs), epoch, 0);
    if (!problem.empty()) return problem;
    if (!bad.is_null() &&
        !warm.stage.power_cut().corrupt(warm.stage.path(bad.node(), bad.snapshot()),
                                        bad.page() * kPageBytes + 1000, 1)) {
      return "damaging the page";
    }
    keys.clear();
    for (uint64_t i = kRecords; i < 2 * kRecords; ++i) keys.push_back(key(i));
    problem = insert(keys, false);
    // The installer removes the reserved records, and the pages that they leave empty. Only the
    // last of these snapshots has the epoch of the removed reservations (R43).
    for (int round = 0; round < 2 && problem.empty(); ++round) {
      problem = warm.take({}, warm.settle(), 0);
      if (problem.empty()) problem = warm.install(keep_all);
    }
    return problem;
  }
  /// Installs five snapshots without changes. After that, the tree does not shrink any further.
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
  /// Returns the pointer to the layer of the keys with `prefix`. REQUIRES: the page above is
  /// volatile.
  DualPointer& layer(const std::string& prefix) {
    WorkerContext& worker = *warm.cluster.worker(0).context;
    worker.enter();
    Link link;
    CHECK(find_layer(worker, warm.storage, bytes_of(prefix), link));
    worker.leave();
    return *link.pointer;
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
  std::string insert(const std::vector<std::string>& keys, bool commits) {
    Transaction& txn = *warm.cluster.worker(0).transaction;
    Status status = txn.begin();
    for (size_t i = 0; i < keys.size() && status == Status::ok; ++i) {
      status = tree.insert(txn, bytes_of(keys[i]), bytes_of("old"));
    }
    if (status == Status::ok && commits) status = txn.commit();
    if (!commits) txn.rollback(Status::user_abort);
    warm.cluster.worker(0).context->leave();
    return status == Status::ok ? "" : "inserts ended with " + std::string(to_string(status));
  }

  const bool has_lower_layer_;
};

/// The page without a snapshot page is dropped together with the page above it.
inline std::string unmatched_pages_are_dropped() {
  UnmatchedPage test;
  std::string problem = test.fill();
  TreeStatistics statistics;
  if (problem.empty()) problem = test.install(statistics);
  if (!problem.empty()) return problem;
  if (statistics.pages() != 1) {  // only the root of the tree stays
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
  problem = install_during_commit(test.warm, [&] { return test.update_last("new"); });
  if (!problem.empty()) return problem;
  const std::string value = test.value_of(UnmatchedPage::kRecords - 1);
  return value == "new" ? "" : "the commit wrote to a page that no reader finds";
}

/// R3: a drop fails because a commit has locked a record. The drop must thaw the words that it has
/// frozen before it unlocks their page. Otherwise a successor of that page could lead to a page
/// that the frozen word does not show.
inline std::string failed_drops_thaw_before_they_unlock() {
  UnmatchedPage test(true);
  std::string problem = test.fill();
  if (problem.empty()) {
    problem = test.warm.install(
        [](PageHeader& page) { return page.layer == 2 ? DropVerdict::drop : DropVerdict::keep; });
  }
  if (!problem.empty()) return problem;
  const DualPointer& word = test.layer(UnmatchedPage::key(UnmatchedPage::kRecords - 2));
  if (!word.load_acquire().is_null()) return "the lowest layer was not dropped";
  bool is_done = false;
  bool is_installing = false;
  bool was_frozen = false;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point == SyncPoint::unlocking_page && is_installing) {
        was_frozen = was_frozen || word.load_acquire().is_frozen();
      }
      if (point != SyncPoint::verified || is_done) return;
      is_done = true;
      is_installing = true;
      problem = test.warm.install(drop_all);
      is_installing = false;
    });
    if (test.update_last("new") != Status::ok) return "no update";
  }
  if (!problem.empty()) return problem;
  if (test.warm.report.busy == 0) return "no drop failed";
  return was_frozen ? "a page was unlocked with a frozen word" : "";
}

/// The snapshot page of the root of the layer cannot be read. Therefore the volatile pages of the
/// layer have no snapshot pages. They must be kept, because they may be the only good copies (R56).
inline std::string unreadable_ranges_keep_their_unmatched_pages() {
  SnapshotPointer root;
  {
    UnmatchedPage same;
    const std::string problem = same.fill();
    if (!problem.empty()) return problem;
    root = SnapshotPointer(same.layer("a layer:").snapshot_word.load(std::memory_order_relaxed));
  }
  UnmatchedPage test;
  std::string problem = test.fill(root);
  TreeStatistics statistics;
  if (problem.empty()) problem = test.install(statistics);
  if (!problem.empty()) return problem;
  for (uint64_t i = 0; i < UnmatchedPage::kRecords; ++i) {
    if (test.value_of(i) != "old") return "record " + std::to_string(i) + " is " + test.value_of(i);
  }
  return "";
}

}  // namespace atolldb::test
