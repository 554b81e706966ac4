// Exports the records of a cluster with checkpoints: from the newest checkpoint and the log after
// it, folded in the memory of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "ops/export/export_source.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct CheckpointSourceRequest {
  std::string data_dir;
  Savepoint savepoint;
  uint32_t checkpoint = 0;  // id; 0: there is none, the log has everything
  /// All epochs up to this one are durable in all logs. The export has their commits, and no later
  /// ones.
  uint64_t durable_epoch = 0;
  std::vector<const TableSchema*> tables;  // other storages need no memory
  /// Called often, with the bytes read so far. An error ends the work and is returned.
  std::function<Result<void>(uint64_t bytes)> on_progress;
};

struct CheckpointSource {
  std::unique_ptr<ExportSource> source;
  uint64_t epoch = 0;  // the source has all commits up to this epoch
};

/// Reads the checkpoint and the log up to the durable epoch, or up to the checkpoint's end epoch if
/// that is later (R89). REQUIRES: nothing deletes these files meanwhile, because a backup's pin
/// keeps them, or because the data are locked. Errors: code corruption for damage; code failed if
/// a table does not fit its storage.
Result<CheckpointSource> read_checkpoint_source(FileSystem& file_system,
                                                const CheckpointSourceRequest& request);

}  // namespace atolldb
