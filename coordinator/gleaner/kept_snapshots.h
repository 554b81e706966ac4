// Which snapshots the pointers of volatile pages may refer to: their files stay open, and on disk
// (R38).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"

namespace atolldb {

/// One thread.
class KeptSnapshots {
 public:
  /// From now on pointers may refer to its pages, and to those of older ones that its files hold.
  void add(const SnapshotMetadata& snapshot) { kept_.push_back({snapshot, 0}); }
  /// No pointer refers to a page of a snapshot before `oldest_left` any more, since epoch `now`:
  /// whoever began later knows none. A pointer that came with a snapshot refers to a page of it or
  /// of an older one, so none is left of those that came with one before `oldest_left`; of all
  /// others some may be.
  void release_before(uint32_t oldest_left, uint64_t now);
  /// Every thread has begun in this epoch or later.
  void forget(uint64_t oldest_begin);

  std::vector<SnapshotMetadata> all() const;

 private:
  struct Kept {
    SnapshotMetadata metadata;
    uint64_t released_at = 0;  // epoch; 0: it is in use
  };
  std::vector<Kept> kept_;
};

}  // namespace atolldb
