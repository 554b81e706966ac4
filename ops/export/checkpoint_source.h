// Exports the records of a cluster with checkpoints: from the newest checkpoint and the log after
// it, folded in the memory of this process.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "ops/export/export_source.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// What an earlier run of the same export has read.
struct BegunCheckpointExport {
  uint64_t epoch = 0;
  uint32_t input_crc32c = 0;
  std::vector<uint32_t> storages = {};  // as CheckpointSource has them
};

struct CheckpointSourceRequest {
  std::string data_dir;
  Savepoint savepoint;
  uint32_t checkpoint = 0;  // id; 0: there is none, the log has everything
  /// Epoch that a running cluster reported as durable when it pinned the checkpoint.
  /// The export has the commits up to this epoch, and no later ones. No value: the cluster is
  /// stopped, and the export has all commits that the next start-up recovers.
  std::optional<uint64_t> durable_epoch;
  /// The export has exactly the commits up to this run's epoch. No value: nothing was read before.
  std::optional<BegunCheckpointExport> begun;
  std::vector<const TableSchema*> tables;  // other storages need no memory
  uint64_t memory_limit = UINT64_MAX;      // of the records of all tables, in bytes
  /// Called often, with the bytes read so far. An error ends the work and is returned.
  std::function<Result<void>(uint64_t bytes)> on_progress;
};

struct CheckpointSource {
  std::unique_ptr<ExportSource> source;
  uint64_t epoch = 0;  // the source has all commits up to this epoch
  /// CRC32C of the ids of the storages, and of the streams of the log that have records, with the
  /// epoch up to which each was read. With the same checkpoint, epoch and storages, it differs if a
  /// salvage has cut the log meanwhile.
  uint32_t input_crc32c = 0;
  std::vector<uint32_t> storages;  // ids of the storages of the tables, in the order of the request
};

/// Reads the checkpoint and the log after it. The last epoch is the largest of these: the end epoch
/// of the checkpoint (R89), the cuts of all incarnations, and the durable epoch of an incarnation
/// without a cut. The logs of such an incarnation are scanned first if the cluster is stopped
/// (R30). The storages of a stopped cluster are those of the next start-up, even if they were
/// created or dropped after the last epoch. REQUIRES: a backup's pin keeps the files, or the data
/// are locked. Errors: code corruption for damage; code failed if a table does not fit its storage,
/// or if the cluster has given up the pin; code resources if the records need more memory than the
/// limit; code identity if the data differ from those with which the export has begun.
Result<CheckpointSource> read_checkpoint_source(FileSystem& file_system,
                                                const CheckpointSourceRequest& request);

}  // namespace atolldb
