// Bodies of tests of unreadable ranges (R56). A body returns an error text, or an empty text if all
// is right. Every run takes the same steps.
#pragma once

#include <string>
#include <vector>

#include "engine/compose/page_output.h"
#include "engine/format/tree_page.h"
#include "tests/engine/compose/snapshot_stage.h"
#include "tests/engine/install/drop_rules.h"

namespace atolldb::test {

/// Records are committed to a range whose page is damaged. When the page is readable again, the
/// snapshot has these records, too.
inline std::string held_records_are_restored() {
  SnapshotStage stage(StorageType::mastertree);
  const auto log = [](LogType type, uint64_t key, uint64_t epoch, const char* payload) {
    return GleanedLog{type, big_endian(key), 0, payload, Vid::make(epoch, key + 1)};
  };
  const auto take = [&](std::vector<GleanedLog> logs, uint64_t epoch) -> std::string {
    const auto combined = stage.round(logs, {""}, epoch);
    return combined ? "" : combined.error().message;
  };
  std::string problem = take({log(LogType::insert, 1, 5, "a"), log(LogType::insert, 2, 5, "b")}, 5);
  if (!problem.empty()) return problem;
  const SnapshotPointer page = stage.storage.base_root;
  const std::string path = stage.path(page.node(), page.snapshot());
  const auto flip = [&] {
    return stage.power_cut().corrupt(path, page.page() * kPageBytes + 1000, 1).has_value();
  };
  if (!flip()) return "damaging the page";
  problem = take({log(LogType::update, 1, 6, "c")}, 6);
  if (!problem.empty()) return problem;
  if (!flip()) return "repairing the page";
  problem = take({log(LogType::update, 2, 7, "d")}, 7);
  if (!problem.empty()) return problem;
  Model found;
  const auto totals = stage.read_all(found);
  if (!totals) return totals.error().message;
  const bool is_all = found.size() == 2 && found[big_endian(1)].payload == "c" &&
                      found[big_endian(2)].payload == "d";
  return is_all ? "" : "a commit is lost";
}

/// A volatile page whose snapshot page cannot be read is retained, and still answers reads.
inline std::string unreadable_ranges_keep_their_pages() {
  DropStage warm;
  warm.fill(0, 1);
  InstallReport report;
  std::string problem = warm.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  // Damages the snapshot page of the first leaf, which is the first page of the first file.
  if (warm.write(0, {{warm.index(0, 0, 0), false, 2}}) != Status::ok) return "writing";
  if (!warm.stage.power_cut().corrupt(warm.stage.path(0, 1), kPageBytes + 1000, 1)) {
    return "damaging the page";
  }
  for (int64_t value = 3; value < 6; ++value) {
    problem = warm.snapshot_and_install(report);
    if (!problem.empty()) return problem;
    if (warm.stage.unreadable.empty()) return "no page was damaged";
    if (warm.read(1, warm.index(0, 0, 0)) != value - 1) return "record 0 is not what was written";
    if (warm.read(1, warm.index(0, 0, 1)) != 1) return "record 1 is not what was written";
    if (warm.read(1, warm.index(0, 1, 0)) != 1) return "another range cannot be read";
    if (warm.write(0, {{warm.index(0, 0, 0), false, value}}) != Status::ok) return "writing again";
  }
  return "";
}

/// A volatile page without changes since the snapshot is kept, too, if its snapshot page cannot be
/// read. It may be the only good copy. A rewrite finds the damage.
inline std::string unreadable_ranges_keep_their_clean_pages() {
  DropStage warm;
  warm.fill(0, 1);
  warm.drop_policy = keep_all;
  InstallReport report;
  std::string problem = warm.snapshot_and_install(report);
  if (!problem.empty()) return problem;
  // Damages the snapshot page of the first leaf, which is the first page of the first file.
  if (!warm.stage.power_cut().corrupt(warm.stage.path(0, 1), kPageBytes + 1000, 1)) {
    return "damaging the page";
  }
  warm.drop_policy = drop_all;
  warm.stage.rewrites = true;
  for (int round = 0; round < 2; ++round) {
    problem = warm.snapshot_and_install(report);
    if (!problem.empty()) return problem;
    if (warm.stage.unreadable.empty()) return "no page was damaged";
    if (warm.pages().leaves != 1) return "another leaf was not dropped, or all were";
    if (warm.read(1, warm.index(0, 0, 0)) != 1) return "record 0 is not what was written";
  }
  return "";
}

}  // namespace atolldb::test
