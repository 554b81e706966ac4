// Bodies of tests in which a snapshot is installed in the middle of what a worker does; empty, or
// what went wrong. Every run takes the same steps.
#pragma once

#include <string>

#include "tests/engine/at_seam.h"
#include "tests/engine/snapshot/drop_rules.h"

namespace atolldb::test {

/// A commit has locked its record, and verified, when the installer comes by.
inline std::string a_commit_under_way_keeps_its_page() {
  DropStage stage;
  stage.fill(0, 1);
  stage.cluster.tick();
  std::string problem = stage.snapshot(stage.settled());
  if (!problem.empty()) return problem;
  InstallReport report;
  {
    const AtFirst seam(Seam::verified, [&] { problem = stage.install(report); });
    if (stage.write(0, {{stage.index(0, 0, 1), false, 2}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  if (stage.read(1, stage.index(0, 0, 1)) != 2) return "a commit was lost";
  return report.busy == 1 ? "" : std::to_string(report.busy) + " pages were busy";
}

/// A worker is about to copy a page up; meanwhile another one has done so, written, and the page
/// was dropped again, onto a later snapshot.
inline std::string a_copy_up_of_an_older_page_fails() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  {
    const AtFirst seam(Seam::installing, [&] {
      stage.fill(1, 2);
      problem = stage.snapshot_and_install(report);
    });
    if (stage.write(0, {{stage.index(0, 0, 0), false, 3}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  if (stage.read(1, stage.index(0, 0, 0)) != 3) return "a commit was lost";
  return stage.read(1, stage.index(0, 0, 1)) == 2 ? "" : "a commit before the drop was lost";
}

/// The same of a page above the leaves: the snapshot is written anew, and older files go.
inline std::string a_copy_up_brings_no_older_snapshot_back() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  {
    const AtFirst seam(Seam::installing, [&] {
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

/// A worker is about to copy a leaf up below a page that is dropped meanwhile.
inline std::string nothing_is_installed_below_a_dropped_page() {
  DropStage stage;
  stage.fill(0, 1);
  InstallReport report;
  int left = 2;  // the leaves; what is above them stays for now
  stage.drop_policy = drop_some(left);
  std::string problem = stage.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  if (stage.pages().leaves != 0 || stage.pages().interiors != 1) return "the stage is not set";
  stage.drop_policy = drop_all;
  {
    const AtFirst seam(Seam::installing, [&] { problem = stage.install(report); });
    if (stage.write(0, {{stage.index(0, 0, 0), false, 3}}) != Status::ok) return "writing";
  }
  if (!problem.empty()) return problem;
  return stage.read(1, stage.index(0, 0, 0)) == 3 ? "" : "a commit was lost";
}

/// A copy-up is faster than the drop of the page above: all frozen words become what they were.
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
    // The installer has looked at all children, and locked their page.
    const AtFirst seam(Seam::locked_page, [&] {
      if (stage.write(0, {{stage.index(0, 1, 0), false, 3}}) != Status::ok) problem = "writing";
    });
    const std::string installed = stage.install(report);
    if (problem.empty()) problem = installed;
  }
  if (!problem.empty()) return problem;
  if (stage.pages().interiors != 1 || stage.pages().leaves != 1) return "a page in use has gone";
  if (stage.write(1, {{stage.index(0, 0, 0), false, 4}}) != Status::ok) return "writing beside it";
  if (stage.read(1, stage.index(0, 1, 0)) != 3) return "a commit was lost";
  return stage.read(0, stage.index(0, 0, 0)) == 4 ? "" : "a commit beside it was lost";
}

/// A snapshot is installed between a scan's look at the snapshot word and at the lists.
inline std::string a_scan_amid_an_installation_misses_nothing() {
  WarmHeap warm(2, false);
  for (int i = 0; i < 30; ++i) {
    if (warm.append(0, 4) != Status::ok) return "appending";
  }
  std::string problem;
  InstallReport report;
  const AtFirst seam(Seam::opening_lists, [&] { problem = warm.snapshot_and_install(report); });
  uint64_t found = 0;
  const std::string scanned = warm.scan(1, found);
  if (!problem.empty()) return problem;
  if (report.dropped == 0) return "nothing was dropped";
  return scanned;
}

}  // namespace atolldb::test
