// The part of a start-up that depends on the scheme of durability: the scheme itself (R99), and the
// check of the checkpoint that the savepoint names. `examine` (log_start.h) calls these functions.
#pragma once

#include <string>

#include "engine/recovery/log_start.h"
#include "shared/base/durability_scheme.h"
#include "shared/base/error.h"
#include "shared/base/run_tasks.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns code failed, with both schemes and what to do, if the data directory has another scheme
/// than the configured one. A new data directory gets the configured scheme, in `start.savepoint`.
/// REQUIRES: `start` is the result of `examine`; `store_cut` follows.
Result<void> choose_scheme(LogStart& start, const std::string& data_dir,
                           DurabilityScheme configured);

/// Reads the metadata of the checkpoint that the savepoint names into `start.checkpoint`. Checks
/// that all its files exist with their headers and sizes. A replay checks their blocks. Errors:
/// code corruption for damage, for metadata that is not as the savepoint says, and for a storage
/// that the DDL log does not create (R52). REQUIRES: the savepoint has the scheme `silor` and names
/// a checkpoint; `start.ddl` is read.
Result<void> examine_checkpoint(FileSystem& file_system, const std::string& data_dir,
                                LogStart& start, const RunTasks& run = run_in_turn);

/// Returns code corruption if the log ends before the end epoch of the checkpoint. Without this
/// log, parts of commits that the checkpoint may have could not be completed (R89). REQUIRES: every
/// incarnation has its cut.
Result<void> refuse_cut_before_end(const LogStart& start, const std::string& data_dir);

}  // namespace atolldb
