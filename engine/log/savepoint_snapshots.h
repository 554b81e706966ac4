// What the savepoint records of snapshots: their ids, the newest one, pins (design: stratified
// snapshots; rules R37, R38). One thread of the coordinator, the one that writes the savepoint.
//
// Each function writes `savepoint` durably, changed, and changes the caller's copy only then.
// REQUIRES: those of write_savepoint. Errors: those of write_savepoint too.
#pragma once

#include <cstdint>
#include <string>

#include "engine/log/savepoint.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// The id of the snapshot that is to be made: no file may bear it before this returns, and if the
/// run fails, no other snapshot will. Code resources: all ids are used up.
Result<uint32_t> take_snapshot_id(FileSystem& file_system, const std::string& data_dir,
                                  Savepoint& savepoint);

/// The snapshot exists from now on. Of the older ones the `keep` - 1 newest are kept, fewer if
/// their log is that of more than kMaxListedIncarnations. Incarnations whose cut all of these cover
/// leave the list (R55). REQUIRES: its id was taken, its files and metadata are durable, `epoch` is
/// not before the last one's (CHECK).
Result<void> store_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, uint32_t id, uint64_t epoch, uint32_t keep = 1);

/// What a user means to pin: without an id (0) the newest snapshot, without a name
/// "snapshot-<id>". Code failed: there is no snapshot.
Result<PinnedSnapshot> choose_pin(const Savepoint& savepoint, uint32_t id, std::string name);

/// The pin that a user means by its name, or by the id of a snapshot with one pin. Code failed:
/// there is none, or there are several of that id.
Result<PinnedSnapshot> find_pin(const Savepoint& savepoint, const std::string& name_or_id);

/// Keeps a snapshot until unpin_snapshot. Code failed: it is neither the newest nor pinned, or a
/// pin has the name, or the name is empty or too long; code resources: as many pins as there may
/// be.
Result<void> pin_snapshot(FileSystem& file_system, const std::string& data_dir,
                          Savepoint& savepoint, uint32_t id, const std::string& name);

/// Code failed: there is no such pin.
Result<void> unpin_snapshot(FileSystem& file_system, const std::string& data_dir,
                            Savepoint& savepoint, const std::string& name);

}  // namespace atolldb
