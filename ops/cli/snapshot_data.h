// What the commands of `atoll snapshot` have in common: which snapshots a data directory holds.
// ls and verify only read, of dead and of live clusters.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"
#include "ops/cli/log_data.h"
#include "shared/error.h"

namespace atolldb::cli {

struct SnapshotOptions {
  std::string data_dir;  // --data-dir; empty: that of the chosen cluster
  bool json = false;
  std::optional<uint32_t> id;  // verify: this one only; pin: none is the newest
  std::string name;            // pin: of the pin; empty: made of the id
  std::string pin;             // unpin: a pin's name, or a snapshot's id
};

/// All that there is of one snapshot.
struct ListedSnapshot {
  bool is_newest = false;
  bool is_kept = false;  // older, by snapshot.keep
  std::vector<std::string> pins;
  /// A snapshot that is the newest or pinned lists files of it: older pages that did not change.
  bool is_referred_to = false;
  std::optional<SnapshotMetadata> metadata;
  std::string damage;  // why there is no metadata although there is a file of it
  uint64_t files = 0;  // of pages
  uint64_t bytes = 0;  // of those
};

/// By id, those that the savepoint names without any file included.
Result<std::map<uint32_t, ListedSnapshot>> find_snapshots(FileSystem& file_system,
                                                          const LogData& data);

/// "newest", "pinned", "kept" (by snapshot.keep); "in use" by one of these; "unneeded": to be
/// deleted, or left by a run that failed; "unfinished": of a run under way, or one that failed
/// since the newest.
std::string state_of(const Savepoint& savepoint, uint32_t id, const ListedSnapshot& snapshot);

Result<LogData> find_snapshot_data(FileSystem& file_system, const ClusterChoice& choice,
                                   const SnapshotOptions& options);

Result<void> list_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> verify_snapshots(const ClusterChoice& choice, const SnapshotOptions& options);
/// Of a running cluster; waits until it is durable.
Result<void> take_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
/// Of a running cluster: what its scrubs found damaged, and what its newest snapshot could not
/// read.
Result<void> list_damage(const ClusterChoice& choice, const SnapshotOptions& options);
/// Of a running cluster through its coordinator, of a dead one under the lock of its data (code
/// already_running if --data-dir names a live one's).
Result<void> pin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> unpin_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);
Result<void> remove_snapshot(const ClusterChoice& choice, const SnapshotOptions& options);

}  // namespace atolldb::cli
