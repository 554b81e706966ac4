#include "coordinator/gleaner/kept_snapshots.h"

namespace atolldb {

void KeptSnapshots::release_before(uint32_t oldest_left, uint64_t now) {
  for (Kept& kept : kept_) {
    if (kept.metadata.id < oldest_left && kept.released_at == 0) kept.released_at = now;
  }
}

void KeptSnapshots::forget(uint64_t oldest_begin) {
  std::erase_if(kept_, [&](const Kept& kept) {
    return kept.released_at != 0 && kept.released_at < oldest_begin;
  });
}

std::vector<SnapshotMetadata> KeptSnapshots::all() const {
  std::vector<SnapshotMetadata> snapshots;
  for (const Kept& kept : kept_) snapshots.push_back(kept.metadata);
  return snapshots;
}

}  // namespace atolldb
