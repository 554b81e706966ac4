// Bodies of tests of victims and of the counts of live pages (R67, R68). A body returns an error
// text, or an empty text if all is right.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/compose/snapshot_stage.h"

namespace atolldb::test {

/// A tree of 3,000 records in several pages. Some of its keys share slices, so it has next layers.
struct VictimTree {
  VictimTree() : stage(StorageType::mastertree) {}

  static std::string key_of(uint64_t i) {
    return i % 8 == 0 ? "a long common prefix " + std::to_string(i) : big_endian(i * 16);
  }
  /// Takes a snapshot that writes every `step`-th record.
  std::string write(uint64_t step, LogType type) {
    std::vector<GleanedLog> logs;
    for (uint64_t i = 0; i < 3000; i += step) {
      const std::string payload = "value of epoch " + std::to_string(epoch);
      logs.push_back({type, key_of(i), 0, payload, Vid::make(epoch, i + 1)});
      model[key_of(i)] = {payload, Vid::make(epoch, i + 1)};
    }
    sort_gleaned(logs);
    return take(logs);
  }
  std::string take(const std::vector<GleanedLog>& logs) {
    const auto combined = stage.round(logs, {"", big_endian(20'000)}, epoch++);
    if (!combined) return combined.error().message;
    const auto closed = stage.close_unneeded();
    return closed ? "" : closed.error().message;
  }
  std::string check() {
    Model found;
    if (const auto totals = stage.read_all(found); !totals) return totals.error().message;
    if (found != model) return "the records differ from what was written";
    const auto counted = stage.check_counts();
    return counted ? "" : counted.error().message;
  }

  SnapshotStage stage;
  Model model;
  uint64_t epoch = 5;
};

/// After updates of all and of some pages, the counts in the metadata equal those of a walk.
inline std::string counts_equal_a_walk() {
  VictimTree tree;
  std::string problem = tree.write(1, LogType::insert);
  for (const uint64_t step : {uint64_t{1}, uint64_t{1000}, uint64_t{7}}) {
    if (problem.empty()) problem = tree.write(step, LogType::insert);
    if (problem.empty()) problem = tree.check();
  }
  return problem;
}

/// After a job, the snapshot needs no page of the victims, although newer pages led to such pages.
inline std::string victims_are_emptied() {
  VictimTree tree;
  std::string problem = tree.write(1, LogType::insert);
  if (problem.empty()) problem = tree.write(1500, LogType::insert);
  if (!problem.empty()) return problem;
  tree.stage.victims = {1};
  problem = tree.take({});
  if (!problem.empty()) return problem;
  for (const SnapshotFilePlace& file : tree.stage.metadata.files) {
    if (file.snapshot == 1) return "a file of the victim is needed";
  }
  return tree.check();
}

}  // namespace atolldb::test
