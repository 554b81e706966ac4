// Scans over runs of snapshot pages (R69). A body returns an error text, or an empty text if all is
// right.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/sequential/sequential.h"
#include "tests/engine/snapshot/cold_storages.h"

namespace atolldb::test {

/// An append: its epoch, its node, and its number among the appends of the node.
struct NumberedAppend {
  uint64_t epoch = 0;
  uint64_t node = 0;
  uint64_t number = 0;
};

/// Snapshots of appends of two nodes, whose epochs overlap.
class RunStage {
 public:
  explicit RunStage(bool merges_runs) { stage.merges_runs = merges_runs; }

  /// Takes a snapshot of the appends of both nodes. REQUIRES: they ascend by node, epoch, number.
  std::string take(const std::vector<NumberedAppend>& appends, uint64_t epoch,
                   size_t payload_bytes) {
    std::vector<GleanedLog> logs;
    for (const NumberedAppend& append : appends) {
      std::string payload = std::to_string(append.node) + " " + std::to_string(append.number);
      payload.resize(std::max(payload.size(), payload_bytes), ' ');
      logs.push_back(
          {LogType::append,
           big_endian(append.node) + big_endian(append.epoch) + big_endian(append.number), 0,
           std::move(payload), Vid::make(append.epoch, 1)});
      all.push_back(append);
    }
    std::vector<std::string> lows = {""};
    if (stage.composing_nodes > 1) lows.push_back(big_endian(1));
    const auto combined = stage.round(logs, lows, epoch);
    return combined ? "" : combined.error().message;
  }

  /// Scans these epochs in a transaction of `cold`. Checks that the records ascend by epoch, that
  /// those of a node are in the order of their appends, and that none is missing.
  std::string scan(ColdCluster& cold, uint64_t first_epoch, uint64_t last_epoch,
                   size_t& most_open) const {
    std::vector<std::vector<NumberedAppend>> wanted(SnapshotStage::kNodes);
    for (const NumberedAppend& append : all) {
      if (append.epoch >= first_epoch && append.epoch <= last_epoch) {
        wanted[append.node].push_back(append);
      }
    }
    std::string problem;
    const Status status = cold.cluster.worker(0).run([&](Transaction& txn) {
      problem.clear();
      most_open = 0;
      std::vector<size_t> next(SnapshotStage::kNodes);
      uint64_t newest = 0;
      SequentialCursor cursor(Sequential(cold.storage), txn, first_epoch, last_epoch);
      Status one = Status::ok;
      while (problem.empty() && (one = cursor.next()) == Status::ok) {
        most_open = std::max(most_open, cursor.open_positions());
        const auto* bytes = reinterpret_cast<const char*>(cursor.payload().data());
        const std::string text(bytes, cursor.payload().size());
        const auto node = static_cast<size_t>(text.at(0) - '0');
        const uint64_t number = std::stoull(text.substr(2));
        if (cursor.epoch() < newest) problem = "epochs do not ascend";
        newest = cursor.epoch();
        const bool is_wanted = next.at(node) < wanted[node].size();
        const NumberedAppend expected = is_wanted ? wanted[node][next[node]] : NumberedAppend{};
        ++next[node];
        if (!is_wanted || expected.number != number || expected.epoch != cursor.epoch()) {
          problem = "record " + std::to_string(number) + " of node " + std::to_string(node) +
                    " came for record " + std::to_string(expected.number);
        }
      }
      for (size_t node = 0; node < next.size() && problem.empty(); ++node) {
        if (next[node] != wanted[node].size()) problem = "records are missing";
      }
      return one == Status::end_of_scan ? Status::ok : one;
    });
    return status == Status::ok ? problem : "scan ended with " + std::string(to_string(status));
  }

  SnapshotStage stage{StorageType::sequential};
  std::vector<NumberedAppend> all;
};

/// R69: a node composes the runs of a node that has left. Both runs have records of all epochs.
inline std::string merged_runs_keep_the_order_of_epochs() {
  RunStage runs(true);
  std::vector<NumberedAppend> appends;
  for (uint64_t node = 0; node < SnapshotStage::kNodes; ++node) {
    for (uint64_t i = 0; i < 20; ++i) appends.push_back({3 + i, node, i});
  }
  std::string problem = runs.take(appends, 30, 100);
  if (!problem.empty()) return problem;
  runs.stage.composing_nodes = 1;
  runs.stage.rewrites = true;
  problem = runs.take({}, 31, 0);
  if (!problem.empty()) return problem;
  ColdCluster cold(runs.stage, 1);
  size_t most_open = 0;
  return runs.scan(cold, 0, kMaxEpoch, most_open);
}

}  // namespace atolldb::test
