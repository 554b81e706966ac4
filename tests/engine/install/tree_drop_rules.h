// Bodies of tests that drop volatile tree pages onto a snapshot (R1, R8), in fixed interleavings. A
// body returns an error text, or an empty text if all is right.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/droppable_tree.h"

namespace atolldb::test {

/// Runs an installation, which drops every page it can, while the commit of `write` has verified
/// and is about to write.
inline std::string install_during_commit(WarmTree& warm, const std::function<Status()>& write) {
  std::string problem;
  bool is_done = false;
  {
    const AtSyncPoints guard([&](SyncPoint point) {
      if (point != SyncPoint::verified || is_done) return;
      is_done = true;
      problem = warm.install(drop_all);
    });
    if (write() != Status::ok) return "no update";
  }
  if (!problem.empty()) return problem;
  return is_done && warm.report.dropped != 0 ? "" : "no page was dropped";
}

/// A page with a commit newer than the snapshot is kept.
inline std::string later_changes_are_kept() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  if (test.write(0, 500, "new") != Status::ok) return "no update";
  problem = test.warm.install(drop_all);
  if (!problem.empty()) return problem;
  if (test.warm.report.dropped == 0) return "no page was dropped";
  return test.value_of(500) == "new" ? "" : "a commit was lost with its page";
}

/// An installation, which drops every page it can, runs while a commit has verified and is about to
/// write.
inline std::string locked_records_are_kept() {
  DroppableTree test(1);
  std::string problem = test.fill();
  if (!problem.empty()) return problem;
  problem = install_during_commit(test.warm, [&] { return test.write(0, 500, "new"); });
  if (!problem.empty()) return problem;
  return test.value_of(500) == "new" ? "" : "the commit wrote to a page that no reader finds";
}

/// A transaction reads below a null word. Then the page is copied up, changed, and dropped onto a
/// later snapshot. The word is null again, but differs from the word that was read.
inline std::string a_dropped_page_is_not_the_one_before() {
  DroppableTree test(2);
  std::string problem = test.fill();
  if (problem.empty()) problem = test.warm.install(drop_all);
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
  if (problem.empty()) problem = test.warm.install(drop_all);
  if (!problem.empty()) return problem;
  if (test.warm.report.dropped == 0) return "no page was dropped";
  return is_abort(reader.commit()) ? "" : "a read of what was before the drop has passed";
}

}  // namespace atolldb::test
