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
  /// Records that pointers may refer to its pages from now on, also to pages of older snapshots in
  /// its files.
  void add(const SnapshotMetadata& snapshot) {
    CHECK(snapshot.id != 0);
    kept_.push_back({snapshot, 0});
  }
  /// Records that since epoch `now` no pointer refers to a page of a snapshot older than
  /// `oldest_left`. Threads that began after `now` know no such pointer. A pointer that an install
  /// of a snapshot stored refers to a page of that snapshot or of an older one. So all pointers of
  /// installs before `oldest_left` are replaced; pointers of the others may remain.
  void release_before(uint32_t oldest_left, uint64_t now) {
    CHECK(now != 0);  // 0 means: in use
    for (Kept& kept : kept_) {
      if (kept.metadata.id < oldest_left && kept.released_at == 0) kept.released_at = now;
    }
  }
  /// Removes the released snapshots that no thread can refer to, because every thread has begun in
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
    uint64_t released_at = 0;  // epoch; 0: in use
  };
  std::vector<Kept> kept_;
};

}  // namespace atolldb
