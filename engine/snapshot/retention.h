// Which files of logs and snapshots nothing needs any more, and their removal (design: stratified
// snapshots; rule R38).
//
// A crash may make either slot of the savepoint the one that counts, so a file must be unneeded by
// both: the functions look at both, and delete_unneeded first writes the savepoint again if one of
// them is behind. A damaged slot may have needed anything: then nothing is deletable until it has
// been written again.
//
// REQUIRES throughout: no run of the gleaner is under way, and no other thread writes the
// savepoint.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/log/savepoint.h"
#include "shared/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct RetentionView {
  std::string data_dir;
  std::set<std::string> directories;  // log_directories(): all that hold logs or snapshots
  std::array<SavepointSlot, 2> slots;
  /// Snapshots that memory refers to: volatile pages' snapshot words, or the published one that
  /// some transaction may still read. They stay, with what they refer to.
  std::set<uint32_t> in_use;
};

/// Paths of log files that hold no epoch which a slot's snapshot does not cover, in an order in
/// which they may be removed one after the other: of a stream that is listed the first ones, never
/// its newest; all of an incarnation that has left the list of both slots. Live logs may be among
/// them. Files of other clusters are not.
Result<std::vector<std::string>> deletable_logs(FileSystem& file_system, const RetentionView& view);

/// Paths of what no slot, pin, snapshot in use, or metadata of one of these names, leftovers of
/// runs that failed included; metadata first. Metadata of a kept snapshot that cannot be read: code
/// corruption.
Result<std::vector<std::string>> deletable_snapshots(FileSystem& file_system,
                                                     const RetentionView& view);

/// Deletes all that, the logs also when it cannot be told which snapshots are deletable; a crash
/// amid it leaves what the next call, or start, can work with. Durable when it returns. Answers the
/// paths of what it deleted. With `aside` the files are moved to discarded-<aside> instead.
Result<std::vector<std::string>> delete_unneeded(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use,
                                                 std::optional<uint32_t> aside = std::nullopt);

/// Deletes one snapshot's files that nothing needs, which delete_unneeded would do, too. Answers
/// their paths. Code failed, with the reason: it is the newest one, pinned, in use, another one
/// refers to its pages, or there is no such snapshot.
Result<std::vector<std::string>> remove_snapshot(FileSystem& file_system,
                                                 const std::string& data_dir, Savepoint& savepoint,
                                                 const std::set<std::string>& directories,
                                                 const std::set<uint32_t>& in_use, uint32_t id);

}  // namespace atolldb
