// Shared parts of the commands of `atoll snapshot`: the snapshots in a data directory. ls and
// verify only read, and the cluster may be live or dead.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"
#include "ops/cli/wal_data.h"
#include "shared/base/error.h"

namespace atolldb::cli {

struct SnapshotOptions : DataOptions {
  std::optional<uint32_t> id;  // verify: check only this one; pin: this one, not the newest
  std::string name;            // pin: name of the pin; empty: derived from the id
  std::string pin;             // unpin: name of the pin, or id of a snapshot
};

/// The known facts about one snapshot.
struct ListedSnapshot {
  bool is_newest = false;
  bool is_kept = false;  // older snapshot that is kept because of snapshot.keep
  std::vector<std::string> pins;
  /// True: the newest, a kept or a pinned snapshot refers to files of this one, because some pages
  /// have not changed since.
  bool is_referred_to = false;
  std::optional<SnapshotMetadata> metadata;
  std::string damage;  // why the metadata cannot be read, although the snapshot has files
  uint64_t files = 0;  // page files
  uint64_t bytes = 0;  // in these files
};

/// Returns the snapshots by id. The result includes snapshots that the savepoint names but that
/// have no files.
Result<std::map<uint32_t, ListedSnapshot>> find_snapshots(FileSystem& file_system,
                                                          const LogData& data);

/// Returns the state of a snapshot as text:
/// "newest", "pinned", "kept" (by snapshot.keep);
/// "in use" if one of those snapshots refers to its files;
/// "unneeded" if it will be deleted, or if a failed snapshot job left it;
/// "unfinished" if it is later than the newest and its job is in progress or has failed.
std::string state_of(const Savepoint& savepoint, uint32_t id, const ListedSnapshot& snapshot);

Result<void> list_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> verify_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
/// Takes a snapshot of a running cluster. Returns when the snapshot is durable.
Result<void> take_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
/// Lists the damage that the scrubs of a running cluster have found, and the ranges that its newest
/// snapshot could not read.
Result<void> list_damage(const ClusterChoice& choice, const SnapshotOptions& options);
/// Each of the three functions below asks the coordinator of a running cluster, or locks the data
/// of a dead one. Returns code already_running if --data-dir names the data of a live cluster.
Result<void> pin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> unpin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> remove_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);

/// The two functions below do the same as pin_snapshot and unpin_snapshot, without output.
Result<PinnedSnapshot> make_pin(const ClusterChoice& choice, const SnapshotOptions& options);
Result<PinnedSnapshot> remove_pin(const ClusterChoice& choice, const SnapshotOptions& options);

}  // namespace atolldb::cli
