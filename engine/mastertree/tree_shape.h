// Where the volatile pages of a Master-tree begin and end, for composers: a snapshot page can take
// a volatile page's place only if it has the very same range (R44).
//
// A shape may be a little old when it is used. What it says wrongly costs a page that cannot be
// dropped this time, nothing else; but of ranges that are in a snapshot only it is right until the
// next pages are dropped.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"
#include "shared/status.h"

namespace atolldb {

/// The pages of one layer, level by level, those below its root: what stands for the root may have
/// any height.
class TreeShape {
 public:
  enum class Kind : uint8_t {
    warm,   // a volatile page
    cold,   // a pointer without a volatile page
    below,  // pages below a cold pointer: nobody knows where they begin
  };
  struct Slot {
    uint64_t low = 0;
    Kind kind = Kind::below;
    bool has_snapshot = true;  // warm: there is a snapshot page beside the pointer to it
    bool is_covered = true;    // warm: so it is with all pages below it
  };

  /// The layer has a volatile root, were it its only page.
  bool has_root() const { return has_root_; }
  void set_root() { has_root_ = true; }
  /// Pages may begin anywhere.
  bool is_empty() const { return levels_.empty(); }
  uint32_t level_count() const { return static_cast<uint32_t>(levels_.size()); }
  std::span<const Slot> level(uint32_t level) const { return levels_[level]; }

  /// A page of this level has to begin, and the one before to end, at this slice.
  bool is_fence(uint32_t level, uint64_t slice) const;
  /// They may.
  bool may_cut(uint32_t level, uint64_t slice) const;
  /// The first fence of the level behind `slice`; false: none.
  bool next_fence(uint32_t level, uint64_t slice, uint64_t& fence) const;
  /// A snapshot page of the level and range, in which nothing has changed, may be used as it is:
  /// whoever installs it finds the volatile pages that it and its children stand for.
  bool fits(uint32_t level, const SliceRange& range) const;

  /// From the left to the right in each level. A cold slot also stands for what is below it.
  void add(uint32_t level, const Slot& slot);
  /// After the last `add`.
  void settle();
  void clear() {
    levels_.clear();
    has_root_ = false;
  }

 private:
  using Level = std::vector<Slot>;
  /// The last slot that begins at or before the slice; null: none.
  const Slot* find(uint32_t level, uint64_t slice) const;

  std::vector<Level> levels_;
  bool has_root_ = false;
};

/// The shape of the layer that the keys with `prefix` (whole slices, 8 bytes each) share, as far as
/// it overlaps `range`; empty if there are no volatile pages of it below a root. Pages that move,
/// and that nobody has a page for to give them a parent, count as one page after a while. Any
/// thread with a page slot (R9): publishes its begin epoch anew every few pages, and is idle on
/// return. cluster_failed.
Status collect_shape(WorkerContext& worker, StorageControl& storage,
                     std::span<const std::byte> prefix, const SliceRange& range, TreeShape& shape);

/// Where the first layer may be cut in two, at or before `slice`, so that no pointer without a
/// volatile page leads to both sides: partitions begin there. 0: nowhere else. A thread as above.
uint64_t cut_at_or_before(WorkerContext& worker, StorageControl& storage, uint64_t slice);

}  // namespace atolldb
