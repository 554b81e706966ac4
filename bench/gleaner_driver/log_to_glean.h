// Finds the input of the gleaner in a data directory, as a coordinator does at start-up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"
#include "engine/recovery/log_start.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb::gleaner_bench {

/// A snapshot as the base of the next one; id 0: none.
struct Base {
  uint32_t id = 0;
  uint64_t epoch = 0;
  std::vector<SnapshotPointer> roots;  // roots of LogToGlean::storages, in the same order
  std::vector<SnapshotFilePlace> files;

  uint64_t bytes() const;
};

struct LogToGlean {
  ClusterUuid cluster_uuid = {};
  std::vector<PlannedStorage> storages;  // by id; base_root is not set
  std::vector<PlannedStream> streams;
  uint64_t epoch = 0;  // epoch of the last commit that counts
  Base base;           // the directory's newest snapshot

  /// Returns the plan of snapshot `id`, which covers the log after `from` up to `up_to_epoch`. The
  /// plan has one mapper and one reducer.
  SnapshotPlan plan(uint32_t id, uint64_t up_to_epoch, const Base& from) const;
};

/// Reads the data directory and changes nothing. REQUIRES: no cluster runs on the directory.
/// Returns code failed if there is no log after its newest snapshot. Other errors are those of
/// `examine`.
Result<LogToGlean> find_log(FileSystem& file_system, const std::string& data_dir);

}  // namespace atolldb::gleaner_bench
