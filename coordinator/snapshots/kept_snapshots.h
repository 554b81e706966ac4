// The snapshots that pointers of volatile pages may refer to. Their files stay open and on disk
// (R38).
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/check.h"

namespace atolldb {

/// Thread: one.
class KeptSnapshots {
 public:
  /// Records that from now on pointers may refer to pages of this snapshot, including its unchanged
  /// pages in files of older snapshots.
  void add(const SnapshotMetadata& snapshot) {
    CHECK(snapshot.id != 0);
    kept_.push_back({snapshot, 0});
  }
  /// Releases the snapshots before `oldest_left`. REQUIRES: in epoch `now` no pointer refers to a
  /// file of a snapshot before `oldest_left`. An install stores only pointers to files of its
  /// snapshot and of older ones. So no pointer is left that the install of a released snapshot has
  /// stored, and threads that begin after `now` find no such pointer.
  void release_before(uint32_t oldest_left, uint64_t now) {
    CHECK(now != 0);  // 0 would mean: in use
    for (Kept& kept : kept_) {
      if (kept.metadata.id < oldest_left && kept.released_at == 0) kept.released_at = now;
    }
  }
  /// Removes the released snapshots that no thread can refer to, because all begin epochs are
  /// `oldest_begin` or later.
  void forget(uint64_t oldest_begin) {
    std::erase_if(kept_, [&](const Kept& kept) {
      return kept.released_at != 0 && kept.released_at < oldest_begin;
    });
  }

  std::vector<SnapshotMetadata> all() const {
    std::vector<SnapshotMetadata> snapshots;
    for (const Kept& kept : kept_) snapshots.push_back(kept.metadata);
    return snapshots;
  }

 private:
  struct Kept {
    SnapshotMetadata metadata;
    uint64_t released_at = 0;  // epoch of the release; 0: in use
  };
  std::vector<Kept> kept_;
};

}  // namespace atolldb
