// What a data directory holds for the gleaner: as the coordinator finds it when it starts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/gleaner/glean_plan.h"
#include "engine/log/log_start.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb::gleaner_bench {

/// A snapshot to begin from; id 0: none.
struct Base {
  uint32_t id = 0;
  uint64_t epoch = 0;
  std::vector<SnapshotPointer> roots;  // of LogToGlean::storages, in their order
  std::vector<SnapshotFilePlace> files;

  uint64_t bytes() const;
};

struct LogToGlean {
  ClusterUuid cluster_uuid = {};
  std::vector<GleanStorage> storages;  // ascending; as if nothing was in a snapshot
  std::vector<GleanStream> streams;
  uint64_t epoch = 0;  // of the last commit that counts
  Base base;           // the directory's newest snapshot

  /// What makes the snapshot number `id` of `epoch` out of `base` and the log behind it, with one
  /// mapper and one reducer.
  GleanPlan plan(uint32_t id, uint64_t up_to_epoch, const Base& from) const;
};

/// REQUIRES: no cluster runs on the directory. Changes nothing. Code failed: there is no log
/// behind its newest snapshot. Code corruption: see examine.
Result<LogToGlean> find_log(FileSystem& file_system, const std::string& data_dir);

}  // namespace atolldb::gleaner_bench
