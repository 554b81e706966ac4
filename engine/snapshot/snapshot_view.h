// A snapshot as transactions see it: its epoch and the roots of all its storages (R18).
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/base/pointer.h"

namespace atolldb {

/// A snapshot as transactions read it. Immutable. Thread: any thread of the process.
class SnapshotView {
 public:
  struct Root {
    uint32_t storage_id = 0;
    SnapshotPointer page{};  // null: the storage is empty

    bool operator==(const Root&) const = default;
  };

  /// `id`: 0 for the empty state before the first snapshot (R62). `roots`: in any order, at most
  /// one per storage.
  SnapshotView(uint32_t id, uint64_t epoch, std::vector<Root> roots)
      : id_(id), epoch_(epoch), roots_(std::move(roots)) {
    std::ranges::sort(roots_, {}, &Root::storage_id);
  }

  uint32_t id() const { return id_; }
  /// Returns the epoch of the snapshot, which has all commits up to this epoch and no later ones.
  uint64_t epoch() const { return epoch_; }
  /// Returns the root, or null if the storage was empty or did not exist.
  SnapshotPointer root_of(uint32_t storage_id) const {
    // Storages that were created together have consecutive ids. The guess avoids the binary search
    // and its unpredictable branches.
    if (!roots_.empty()) [[likely]] {
      const uint64_t guess = uint64_t{storage_id} - roots_.front().storage_id;
      if (guess < roots_.size() && roots_[guess].storage_id == storage_id) [[likely]]
        return roots_[guess].page;
    }
    const auto found = std::ranges::lower_bound(roots_, storage_id, {}, &Root::storage_id);
    return found == roots_.end() || found->storage_id != storage_id ? SnapshotPointer()
                                                                    : found->page;
  }

 private:
  uint32_t id_;
  uint64_t epoch_;
  std::vector<Root> roots_;
};

}  // namespace atolldb
