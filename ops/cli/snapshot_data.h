// Shared parts of the commands of `atoll snapshot`: the snapshots in a data directory. ls and
// verify only read, for live and dead clusters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"
#include "ops/cli/log_data.h"
#include "shared/base/error.h"

namespace atolldb::cli {

struct SnapshotOptions : DataOptions {
  std::optional<uint32_t> id;  // verify: only this one; pin: this one instead of the newest
  std::string name;            // pin: name of the pin; empty: derived from the id
  std::string pin;             // unpin: name of the pin, or id of a snapshot
};

/// The known facts about one snapshot.
struct ListedSnapshot {
  bool is_newest = false;
  bool is_kept = false;  // an older one, kept by snapshot.keep
  std::vector<std::string> pins;
  /// The newest or a pinned snapshot refers to its files, because some pages have not changed since
  /// this snapshot.
  bool is_referred_to = false;
  std::optional<SnapshotMetadata> metadata;
  std::string damage;  // why its metadata cannot be read, although it has files
  uint64_t files = 0;  // page files
  uint64_t bytes = 0;  // in these files
};

/// Returns the snapshots by id. It includes snapshots that the savepoint names and that have no
/// files.
Result<std::map<uint32_t, ListedSnapshot>> find_snapshots(FileSystem& file_system,
                                                          const LogData& data);

/// Returns "newest", "pinned", "kept" (by snapshot.keep); "in use" if one of these refers to it;
/// "unneeded" if it will be deleted or a failed run left it; "unfinished" if its run is in progress
/// or failed after the newest.
std::string state_of(const Savepoint& savepoint, uint32_t id, const ListedSnapshot& snapshot);

Result<void> list_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> verify_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
/// For a running cluster. Waits until the snapshot is durable.
Result<void> take_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
/// For a running cluster. Lists the damage that its scrubs have found, and the ranges that its
/// newest snapshot could not read.
Result<void> list_damage(const ClusterChoice& choice, const SnapshotOptions& options);
/// Each of these asks the coordinator of a running cluster, or locks the data of a dead one.
/// Returns code already_running if --data-dir names the data of a live one.
Result<void> pin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> unpin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> remove_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);

/// The first two of these without output.
Result<PinnedSnapshot> make_pin(const ClusterChoice& choice, const SnapshotOptions& options);
Result<PinnedSnapshot> remove_pin(const ClusterChoice& choice, const SnapshotOptions& options);

}  // namespace atolldb::cli
