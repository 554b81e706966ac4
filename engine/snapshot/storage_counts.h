// Counts of the pages of a snapshot cache by storage.
//
// A storage has the slot id % kMaxStorages, as in the catalog. So the memory of the table is
// bounded, and a change of a count is one access. Ids are never reused, and the storages that exist
// have different slots. Therefore of two storages with the same slot, the one with the smaller id
// was dropped. A read of a page takes over a slot with a smaller id, and the counts of that slot
// move to `others`. The pages of the dropped storage that are still in the cache count there as
// well.
//
// The sum of all slots and `others` is the count of the whole cache.
// No place counts more evictions than reads. A page's read and its eviction count in different
// places only if the slot was taken over in between. Then the read has moved to `others`, where the
// eviction counts, too.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <vector>

#include "shared/base/check.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Counts of one storage since the node's start.
struct StorageCount {
  uint32_t storage_id = 0;  // 0: no storage
  uint64_t pages_read = 0;  // pages that entered the cache; each was read from the device
  uint64_t evictions = 0;

  /// Returns the number of pages in the cache now.
  uint64_t cached() const {
    DCHECK(evictions <= pages_read);
    return pages_read - evictions;
  }
};

/// Accepts every number as an id, because a page may be damaged. Only take_changed allocates.
/// Thread: one at a time.
class StorageCounts {
 public:
  /// Counts a page of the storage that enters the cache.
  void add_read(uint32_t storage_id) {
    StorageCount& slot = slots_[storage_id % kMaxStorages];
    if (slot.storage_id < storage_id) {
      others_.pages_read += slot.pages_read;
      others_.evictions += slot.evictions;
      slot = {storage_id, 0, 0};
    }
    changed_.set(storage_id % kMaxStorages);
    ++place_of(storage_id).pages_read;
  }
  /// Counts a page of the storage that leaves the cache.
  /// REQUIRES: add_read was called for the page.
  void add_eviction(uint32_t storage_id) {
    StorageCount& place = place_of(storage_id);
    changed_.set(storage_id % kMaxStorages);
    ++place.evictions;
    DCHECK(place.evictions <= place.pages_read);
  }

  /// Returns the slots that have changed since the last call, or since the start.
  std::vector<StorageCount> take_changed() {
    std::vector<StorageCount> changed;
    for (size_t slot = 0; changed_.any() && slot < kMaxStorages; ++slot) {
      if (!changed_.test(slot)) continue;
      changed_.reset(slot);
      if (slots_[slot].storage_id == 0) continue;  // only pages of dropped storages were evicted
      DCHECK(slots_[slot].storage_id % kMaxStorages == slot);
      changed.push_back(slots_[slot]);
    }
    return changed;
  }

  /// The counts by slot. A slot that was never used has the id 0.
  const std::array<StorageCount, kMaxStorages>& slots() const { return slots_; }
  /// The sum of the counts of storages without a slot: dropped ones, and those of damaged pages.
  const StorageCount& others() const { return others_; }

 private:
  StorageCount& place_of(uint32_t storage_id) {
    StorageCount& slot = slots_[storage_id % kMaxStorages];
    return storage_id != 0 && slot.storage_id == storage_id ? slot : others_;
  }

  std::array<StorageCount, kMaxStorages> slots_{};
  StorageCount others_;
  std::bitset<kMaxStorages> changed_;  // by slot
};

}  // namespace atolldb
