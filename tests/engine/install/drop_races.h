// Bodies of tests in which a snapshot is installed in the middle of a worker's operation. A body
// returns an error text, or an empty text if all is right. Every run takes the same steps.
#pragma once

#include <string>

#include "tests/engine/hooks/at_sync_point.h"
#include "tests/engine/install/drop_rules.h"

namespace atolldb::test {

/// A commit has locked and verified its record when the installer reaches the page. The installer
/// keeps the page.
inline std::string a_commit_under_way_keeps_its_page() {
  DropStage stage;
  stage.fill(0, 1);
  stage.cluster.tick();
  std::string problem = stage.snapshot(stage.settled());
  if (!problem.empty()) return problem;
  InstallReport report;
  {
    const AtFirst at_point(SyncPoint::verified, [&] { problem = stage.install(report); });
    if (stage.write(0, {{stage.index(0, 0, 1), false, 2}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  if (stage.read(1, stage.index(0, 0, 1)) != 2) return "a commit was lost";
  return report.busy == 1 ? "" : std::to_string(report.busy) + " pages were busy";
}

/// A worker is about to copy a page up. Meanwhile another worker copies the page up, writes to it,
/// and the page is dropped onto a later snapshot. The first copy-up must fail.
inline std::string a_copy_up_of_an_older_page_fails() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  {
    const AtFirst at_point(SyncPoint::installing, [&] {
      stage.fill(1, 2);
      problem = stage.snapshot_and_install(report);
    });
    if (stage.write(0, {{stage.index(0, 0, 0), false, 3}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  if (stage.read(1, stage.index(0, 0, 0)) != 3) return "a commit was lost";
  return stage.read(1, stage.index(0, 0, 1)) == 2 ? "" : "a commit before the drop was lost";
}

/// A worker is about to copy up a page above the leaves. Meanwhile the snapshot is rewritten, and
/// older files are deleted. The copy-up must not bring back pointers to these files.
inline std::string a_copy_up_brings_no_older_snapshot_back() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  {
    const AtFirst at_point(SyncPoint::installing, [&] {
      stage.stage.rewrites = true;
      problem = stage.snapshot_and_install(report);
    });
    const Status status = stage.write(0, {{stage.index(0, 0, 0), false, 3}});
    if (status != Status::ok) return "writing: " + std::string(to_string(status));
  }
  if (!problem.empty()) return problem;
  const uint32_t oldest = stage.pages().oldest_snapshot;
  if (oldest != stage.stage.snapshot)
    return "snapshot " + std::to_string(oldest) + " is referred to";
  return stage.read(1, stage.index(0, 1, 0)) == 1 ? "" : "a record is not read";
}

/// A worker is about to copy a leaf up. Meanwhile the page above the leaf is dropped. The copy-up
/// must not change the dropped page.
inline std::string nothing_is_installed_below_a_dropped_page() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  int left = 2;  // drops the two leaves; the pages above them are kept for now
  stage.drop_policy = drop_some(left);
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  if (stage.pages().leaves != 0 || stage.pages().interiors != 1) return "the stage is not set";
  stage.drop_policy = drop_all;
  {
    const AtFirst at_point(SyncPoint::installing, [&] { problem = stage.install(report); });
    if (stage.write(0, {{stage.index(0, 0, 0), false, 3}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  return stage.read(1, stage.index(0, 0, 0)) == 3 ? "" : "a commit was lost";
}

/// A copy-up finishes before the drop of the page above. The drop is given up, and all frozen words
/// are restored.
inline std::string a_drop_that_is_given_up_leaves_all_as_it_was() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  int left = 2;
  stage.drop_policy = drop_some(left);
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  stage.drop_policy = drop_all;
  {
    // At this point the installer has checked all children, and has locked their parent page.
    const AtFirst at_point(SyncPoint::locked_page, [&] {
      if (stage.write(0, {{stage.index(0, 1, 0), false, 3}}) != Status::ok) problem = "writing";
    });
    const std::string installed = stage.install(report);
    if (problem.empty()) problem = installed;
  }
  if (!problem.empty()) return problem;
  if (stage.pages().interiors != 1 || stage.pages().leaves != 1) return "a page in use was dropped";
  if (stage.write(1, {{stage.index(0, 0, 0), false, 4}}) != Status::ok) return "writing beside it";
  if (stage.read(1, stage.index(0, 1, 0)) != 3) return "a commit was lost";
  return stage.read(0, stage.index(0, 0, 0)) == 4 ? "" : "a commit beside it was lost";
}

/// A snapshot is installed after a scan has read the snapshot word, and before it reads the lists.
inline std::string a_scan_amid_an_installation_misses_nothing() {
  WarmHeap warm(2, false);
  for (int i = 0; i < 30; ++i) {
    if (warm.append(0, 4) != Status::ok) return "appending";
  }
  std::string problem;
  InstallReport report;
  const AtFirst at_point(SyncPoint::opening_lists,
                         [&] { problem = warm.snapshot_and_install(report); });
  uint64_t found = 0;
  const std::string scanned = warm.scan(1, found);
  if (!problem.empty()) return problem;
  if (report.dropped == 0) return "nothing was dropped";
  return scanned;
}

}  // namespace atolldb::test
