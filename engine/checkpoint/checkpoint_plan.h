// Messages between coordinator and nodes for checkpoints and replays, and their encoding: the
// ranges of the storages, and the plan of a replay.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/checkpoint/key_range.h"
#include "engine/gleaner/snapshot_plan.h"
#include "shared/base/durability_scheme.h"
#include "shared/base/error.h"

namespace atolldb {

/// The ranges of one storage: one for each part of a checkpoint.
struct DividedStorage {
  uint32_t id = 0;
  std::vector<KeyRange> ranges;

  bool operator==(const DividedStorage&) const = default;
};

/// What all nodes replay. Each node reads a part of the files (divide_files).
struct ReplayPlan {
  uint64_t checkpoint = 0;    // id of the checkpoint; 0: none, the log has everything
  uint64_t first_epoch = 1;   // replay epoch of the checkpoint; without one the first epoch of all
  uint64_t cut_epoch = 0;     // the last epoch that the recovery restores
  uint32_t last_storage = 0;  // largest id of a storage that was ever created
  ReplayOrder order = ReplayOrder::newest_first;  // of the log files
  /// Streams of the log, each with the cut of its incarnation. Those that end before first_epoch
  /// are ignored.
  std::vector<PlannedStream> streams;
};

std::vector<std::byte> encode_divided(const std::vector<DividedStorage>& storages);
std::vector<std::byte> encode_replay_plan(const ReplayPlan& plan);

/// Decode bytes from another process. Error: code failed if the bytes differ from what the encode
/// function writes, or if the value contradicts itself: ids that do not ascend, storages with
/// different numbers of ranges, epochs in the wrong order.
Result<std::vector<DividedStorage>> decode_divided(std::span<const std::byte> bytes);
Result<ReplayPlan> decode_replay_plan(std::span<const std::byte> bytes);

}  // namespace atolldb
