// Fence map of a Master-tree (`FenceMap`): where its volatile pages begin and end. Composers use
// it, because a snapshot page can replace a volatile page only if it has the same range (R44).
//
// A fence map may be slightly out of date when it is used. A wrong fence only means that a page is
// not dropped this time. For ranges that are in a snapshot only, the map is exact until the next
// pages are dropped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/check.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The fences of the pages of one layer, level by level. The root is left out, because the page
/// that replaces it may have any height.
class FenceMap {
 public:
  enum class Kind : uint8_t {
    warm,   // there is a volatile page
    cold,   // a pointer without a volatile page
    below,  // pages below a cold pointer: their fences are unknown
  };
  struct Slot {
    uint64_t low = 0;
    Kind kind = Kind::below;
    bool has_snapshot = true;  // warm: the pointer to the page also has a snapshot page
    bool is_covered = true;    // warm: all volatile pages below it also have snapshot pages
  };

  /// Returns true if the layer has a volatile root, which may be its only page.
  bool has_root() const { return has_root_; }
  void set_root() { has_root_ = true; }
  /// Returns true if no fences are known. Pages may then begin at any slice.
  bool is_empty() const { return levels_.empty(); }
  uint32_t level_count() const { return static_cast<uint32_t>(levels_.size()); }
  std::span<const Slot> level(uint32_t level) const {
    CHECK(level < levels_.size());
    return levels_[level];
  }

  /// Returns whether the slice is a fence of this level: one page must end there, and the next page
  /// must begin there.
  bool is_fence(uint32_t level, uint64_t slice) const;
  /// Returns whether a page of this level may begin at this slice.
  bool may_cut(uint32_t level, uint64_t slice) const;
  /// Finds the first fence of the level after `slice`. Returns false if no fence follows.
  bool next_fence(uint32_t level, uint64_t slice, uint64_t& fence) const;
  /// Returns whether an unchanged snapshot page of this level and range may be reused. As far as
  /// fences are known, the range must begin and end at fences of the level. All volatile pages
  /// below the page must already have snapshot pages.
  bool fits(uint32_t level, const SliceRange& range) const;

  /// Adds a slot to the level. Adds a cold slot to all lower levels as well, with the kind `below`.
  /// REQUIRES: slots of a level are added from left to right.
  void add(uint32_t level, const Slot& slot);
  /// Completes the map after the last `add`.
  void settle();
  void clear() {
    levels_.clear();
    has_root_ = false;
  }

 private:
  using Level = std::vector<Slot>;
  /// Returns the last slot that begins at or before the slice, or null if no slot does.
  const Slot* find(uint32_t level, uint64_t slice) const;

  std::vector<Level> levels_;
  bool has_root_ = false;
};

/// Collects the part of a layer's fence map that overlaps `range`. `prefix`: the whole slices (8
/// bytes each) that all keys of the layer share. The map is empty if the layer's root is not a
/// volatile interior page. If the pages of a range have moved and cannot be adopted after some
/// retries, the range counts as one page. The thread publishes its begin epoch every few pages
/// (R9), and is idle on return. Returns ok or cluster_failed. Thread: any thread with a page slot.
Status collect_fence_map(WorkerContext& worker, StorageControl& storage,
                         std::span<const std::byte> prefix, const SliceRange& range,
                         FenceMap& fence_map);

/// Returns a slice, at or before `slice`, where the first layer may be cut into partitions. Returns
/// 0 if there is none. Every cold pointer leads to only one side of such a cut (R44). Thread: any
/// thread with a page slot; it is idle on return.
uint64_t cut_at_or_before(WorkerContext& worker, StorageControl& storage, uint64_t slice);

}  // namespace atolldb
