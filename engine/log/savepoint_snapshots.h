// Changes of the savepoint for snapshots and checkpoints: ids, the newest one, pins (R37, R38).
// Thread: the coordinator thread that writes the savepoint.
//
// The functions with a FileSystem write the changed savepoint durably, and change the caller's copy
// only after that. They also have the requirements and errors of write_savepoint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/log/savepoint.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Takes an id for the next snapshot. If the snapshot job fails, the id is never used again.
/// REQUIRES: no file gets the id before the function returns.
/// Error: code resources if all ids are used up.
Result<uint32_t> take_snapshot_id(FileSystem& file_system, const std::string& data_dir,
                                  Savepoint& savepoint);

/// Makes snapshot `id` the newest one, and keeps the `keep` - 1 newest of the older ones. The log
/// after the kept snapshots may belong to at most kMaxListedIncarnations incarnations. If it
/// belongs to more, the function keeps fewer snapshots. If that is not enough, it removes the pins
/// of backups. Incarnations that all these snapshots cover leave the list (R55, R65). If
/// `may_forget` is false, no incarnation leaves the list, because the archive does not have their
/// cuts durably yet (R72). REQUIRES: the id was taken; files and metadata of the snapshot are
/// durable; `epoch` is not before the epoch of the previous snapshot (CHECK).
Result<void> store_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, uint32_t id, uint64_t epoch, uint32_t keep = 1,
                            bool may_forget = true);

/// Makes checkpoint `id` the newest one, instead of the one before. Incarnations whose log no
/// recovery from it needs leave the list, as store_snapshot has it. If an incarnation is running,
/// the end epoch becomes its durable epoch, so that a log that ends before it is damaged, and not
/// torn (R30, R89). REQUIRES: the scheme is `silor`; the id was taken; the checkpoint is installed
/// (R98); the epochs are not before those of the checkpoint before (CHECK).
Result<void> store_checkpoint(FileSystem& file_system, const std::string& data_dir,
                              Savepoint& savepoint, uint32_t id, uint64_t replay_epoch,
                              uint64_t end_epoch, bool may_forget = true);

/// Removes the pins of backups from `savepoint`; the caller writes the savepoint afterwards. The
/// log after the pinned snapshots may then be deleted, so a backup in progress fails (R65).
void remove_backup_pins(Savepoint& savepoint);
/// Does the same durably, in both slots. Returns the number of removed pins.
Result<size_t> give_up_backup_pins(FileSystem& file_system, const std::string& data_dir,
                                   Savepoint& savepoint);

/// Completes a pin that a user asks for. Id 0 means the newest snapshot; an empty name becomes
/// "snapshot-<id>".
/// Error: code failed if there is no snapshot.
Result<PinnedSnapshot> choose_pin(const Savepoint& savepoint, uint32_t id, std::string name);

/// Returns the pin with this name, or the only pin of the snapshot with this id.
/// Error: code failed if there is no such pin, or if the snapshot has several pins.
Result<PinnedSnapshot> find_pin(const Savepoint& savepoint, const std::string& name_or_id);

/// Adds a pin, which keeps the snapshot until unpin_snapshot.
/// Errors: code failed if the snapshot is neither the newest, nor kept, nor pinned. Code failed if
/// another pin has the name, or if the name is empty or too long. Code resources if there are
/// already kMaxPinnedSnapshots pins.
Result<void> pin_snapshot(FileSystem& file_system, const std::string& data_dir,
                          Savepoint& savepoint, uint32_t id, const std::string& name);

/// Removes a pin.
/// Error: code failed if there is no such pin.
Result<void> unpin_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, const std::string& name);

}  // namespace atolldb
