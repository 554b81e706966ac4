// Finds and removes files of logs, snapshots and checkpoints that nothing needs any more (R38).
//
// After a crash either slot of the savepoint may be the valid one. So a file is deletable only if
// neither slot needs it. All functions check both slots. delete_unneeded first rewrites the
// savepoint if one slot is out of date. A damaged slot may have named any file, so nothing is
// deletable until that slot has been rewritten.
//
// REQUIRES for all functions: no snapshot job and no checkpoint is under way, and no other thread
// writes the savepoint.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns whether a log file must be kept although the cluster does not need it, because an
/// archive does not have it yet (R72). An empty function keeps no file.
using KeepLog = std::function<bool(const LogFilePlace&)>;

struct RetentionView {
  std::string data_dir;
  // All directories that hold logs or snapshots: see log_directories().
  std::set<std::string> directories;
  std::array<SavepointSlot, 2> slots;
  /// Snapshots that memory refers to: by the snapshot words of volatile pages, or because a
  /// transaction may still read a published one. They are kept, with all files that they refer to.
  std::set<uint32_t> in_use;
  KeepLog keep_log = {};
};

/// Returns the paths of deletable log files. The caller may remove them one after the other in the
/// returned order. The streams may include logs that are being written.
///
/// In a stream that both slots list, the first files are deletable if they have no epoch after
/// Savepoint::oldest_epoch of both slots (R55, R65). The newest file is never deletable. In an
/// incarnation that neither slot lists any more, all files are deletable. Files of other clusters,
/// files that `keep_log` keeps, and later files of the same stream are not deletable.
Result<std::vector<std::string>> deletable_logs(FileSystem& file_system, const RetentionView& view);

/// Returns the paths of deletable files of snapshots, metadata first. A file is deletable if it
/// neither belongs to a needed snapshot nor is listed in the metadata of one. Needed are the
/// snapshots that a slot names as newest, pinned or kept, and those in use. Leftovers of failed
/// snapshot jobs are deletable, too.
/// Error: code corruption if the metadata of a kept snapshot cannot be read.
Result<std::vector<std::string>> deletable_snapshots(FileSystem& file_system,
                                                     const RetentionView& view);

/// Returns the paths of deletable files of checkpoints, the metadata of each checkpoint before its
/// other files (R91). Needed are the checkpoints that a slot names as newest or pinned. Leftovers
/// of failed checkpoints are deletable, too. REQUIRES: the savepoint has the scheme `silor`.
Result<std::vector<std::string>> deletable_checkpoints(FileSystem& file_system,
                                                       const RetentionView& view);

/// Deletes all deletable files and returns their paths. With `aside` it moves them to
/// discarded-<aside> instead, and ignores `keep_log`, because these files still exist there. The
/// result is durable on return. After a crash during the call the next call, or the next start-up,
/// can continue.
/// Error: code corruption if metadata cannot be read. If it is the metadata of the newest snapshot,
/// nothing is deleted. If it is that of another needed snapshot, only logs are deleted.
Result<std::vector<std::string>> delete_unneeded(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use,
                                                 std::optional<uint32_t> aside = std::nullopt,
                                                 const KeepLog& keep_log = {});

/// Deletes the files of one snapshot that delete_unneeded would delete too, and returns their
/// paths.
/// Error: code failed, with the reason, if the snapshot must stay or does not exist. It must stay
/// if it is the newest one, pinned, kept, or in use, or if another snapshot refers to its pages.
Result<std::vector<std::string>> remove_snapshot(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use, uint32_t id);

}  // namespace atolldb
