// Checks of the data directory that a backup or an export of a checkpoint reads, and the last epoch
// that its logs have.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns an error with code failed if a discard or a salvage of the data is unfinished.
Result<void> refuse_unfinished(FileSystem& file_system, const std::string& data_dir);

/// Returns an error with code failed if the savepoint no longer keeps the snapshot or checkpoint
/// and the log after it (R55, R65). Id 0: the whole log is needed, and this function accepts it.
/// Without this check a reader may miss commits, because it does not know of incarnations that the
/// savepoint no longer lists.
Result<void> refuse_unkept(const Savepoint& savepoint, const std::string& data_dir, uint32_t id);

/// Returns the last epoch whose commits all logs of the incarnation have: its cut, if there is one.
/// `live_epoch`: the epoch that a running cluster has reported as durable. Without it the cluster
/// is stopped, and this function scans the logs as a recovery does (R30). Error: code corruption
/// if a log lacks an epoch that was durable. REQUIRES: the epochs of the savepoint that are known
/// to be durable are in `durable_epoch` or `snapshot_epoch`.
Result<uint64_t> durable_epoch_of(FileSystem& file_system, const Savepoint& savepoint,
                                  const Incarnation& incarnation,
                                  std::optional<uint64_t> live_epoch);

}  // namespace atolldb
