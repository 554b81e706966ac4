// Builds the pages of one layer of a Master-tree from the left to the right: records in key order
// become border pages, pages become interior ones. Dense, but of what does not fit in one page at
// the end of a range two halves are made. Bounded memory: what two pages per level hold.
//
// Ranges: the caller says where a base page's range ends, and there a page ends, so that fences
// stay what they were; only small pages are joined with the next one, if that is rewritten, too.
// And it says where volatile pages end: there one ends in any case, were it empty (R44).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/mastertree/build.h"
#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/snapshot/page_output.h"

namespace atolldb {

/// A page without a parent yet; null: a range without any record.
struct TreeChild {
  uint64_t low = 0;
  SnapshotPointer page;
};

/// A record that is on its way into a page.
struct TreeItem {
  uint64_t slice = 0;
  uint16_t remainder = 0;  // kRemainderNextLayer: `next_layer` counts, not the payload
  Bytes suffix = {};       // remainder - 8 bytes, if it is more than that
  Bytes payload = {};
  Vid vid = {};
  SnapshotPointer next_layer = {};

  bool is_next_layer() const { return remainder == kRemainderNextLayer; }
  /// What it takes in a border page, its slot included.
  uint32_t page_bytes() const {
    const uint32_t capacity =
        is_next_layer()
            ? static_cast<uint32_t>(sizeof(DualPointer))
            : TreeRecord::capacity_for(remainder, static_cast<uint32_t>(payload.size()));
    return kSlotBytes + TreeRecord::bytes_for(remainder, capacity);
  }
};

class TreeBuilder {
 public:
  TreeBuilder(PageOutput& pages, uint8_t layer) : pages_(pages), layer_(layer) {}

  /// Records from here on, of a range that begins at `low`: behind what was said before.
  void begin_border(uint64_t low);
  /// A range has ended that may be joined with the next one (end_border).
  bool is_open() const { return is_open_; }
  /// No record is held that is not in a page yet.
  bool is_empty() const { return held_.empty(); }
  /// In order; the item's bytes are copied. All records of a slice must fit in one page.
  Result<void> add(const TreeItem& item);
  /// Bytes in a page that the records of this slice take so far.
  uint32_t bytes_of_slice(uint64_t slice) const;
  enum class Ending : uint8_t {
    plain,
    joinable,  // another range begins right there, and the two may share a page
    exact,     // a page of its own, even without records
  };
  /// The range of records ends at `range.high`.
  Result<void> end_border(const SliceRange& range, Ending ending);

  /// Nothing below that level waits for its parent.
  bool may_add(uint32_t level) const;
  /// A page as it is, or (null) a range without records. REQUIRES: may_add.
  Result<void> add_page(uint32_t level, uint64_t low, SnapshotPointer page);
  /// The pages at `level` since the last time get parents, none of which goes beyond range.high.
  Result<void> close(uint32_t level, const SliceRange& range);
  /// Closes levels until at most `limit` pages are left, all of one level. An only one that is
  /// null: no records at all; else none is null.
  Result<std::vector<TreeChild>> finish(const SliceRange& range, size_t limit, uint32_t& level);

  /// The one record that was added, if it is all there is.
  std::optional<TreeItem> only_item() const;
  /// An interior page above another page, at `level` + 1.
  Result<SnapshotPointer> cover(uint32_t level, SnapshotPointer page, const SliceRange& range);

 private:
  struct Held {
    uint64_t slice;
    uint64_t vid;
    uint64_t next_layer;
    uint32_t at;  // in bytes_: suffix, then payload
    uint16_t remainder;
    uint16_t payload_bytes;
    uint32_t page_bytes;
  };

  TreeItem item_of(const Held& held) const;
  /// Whether a page may have as many slots as items [first, last) need.
  bool has_slots(size_t first, size_t last) const;
  bool fit_all() const;
  bool is_cut(size_t at) const { return held_[at - 1].slice != held_[at].slice; }
  bool is_small() const;
  size_t longest_prefix() const;
  size_t even_cut() const;
  Result<void> emit_overflow();
  Result<void> emit_border(size_t count, uint64_t high, bool high_is_end, bool keeps_empty = false);
  Result<SnapshotPointer> write_border(size_t count, const SliceRange& range);
  Result<void> emit_interior(uint32_t level, size_t count, uint64_t high, bool high_is_end);
  Result<void> fill_gaps(uint32_t level, std::span<TreeChild> children, uint64_t high,
                         bool high_is_end);
  Result<SnapshotPointer> write_empty(uint32_t level, const SliceRange& range);
  std::vector<TreeChild>& children(uint32_t level);

  PageOutput& pages_;
  uint8_t layer_;
  bool is_open_ = false;  // a border page is
  uint64_t low_ = 0;      // where it begins
  std::vector<Held> held_;
  std::vector<std::byte> bytes_;
  uint32_t held_bytes_ = 0;  // in pages
  size_t boundary_ = 0;      // items of ranges that ended before, at boundary_fence_; 0: none
  uint64_t boundary_fence_ = 0;
  std::vector<std::vector<TreeChild>> levels_;
};

}  // namespace atolldb
