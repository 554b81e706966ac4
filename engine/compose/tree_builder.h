// Builds the pages of one layer of a Master-tree from left to right. Records in key order become
// border pages, and interior pages are built above them. Pages are dense. If the last records of a
// range need two pages, each gets about half of the bytes.
// Memory: the content of two pages per level.
//
// Ranges: the caller names the end of each range of a base page. A new page ends there, too, so
// fences stay unchanged. Exception: a small page may be joined with the next page if the next range
// is rewritten as well. The caller also names the ends of volatile pages. A new page ends at each
// of them, even if it has no records (R44).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/compose/page_output.h"
#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/build.h"

namespace atolldb {

/// A page that has no parent yet. `page` null: a range without records.
struct TreeChild {
  uint64_t low = 0;
  SnapshotPointer page;
};

/// A record that is to be added to a page.
struct TreeItem {
  uint64_t slice = 0;
  uint16_t remainder = 0;  // kRemainderNextLayer: `next_layer` is valid instead of the payload
  Bytes suffix = {};       // remainder - 8 bytes, if remainder is more than 8
  Bytes payload = {};
  Vid vid = {};
  SnapshotPointer next_layer = {};

  bool is_next_layer() const { return remainder == kRemainderNextLayer; }
  /// Returns the bytes that the record takes in a border page, its slot included.
  uint32_t page_bytes() const {
    const uint32_t capacity =
        is_next_layer()
            ? static_cast<uint32_t>(sizeof(DualPointer))
            : TreeRecord::capacity_for(remainder, static_cast<uint32_t>(payload.size()));
    return kSlotBytes + TreeRecord::bytes_for(remainder, capacity);
  }
};

/// Sets header, range and capacity of a border page for `count` records, which the caller adds with
/// write_slot. `bytes`: of these records and their slots. Free room gets slots, so inserts into a
/// volatile copy of the page do not replace it at once. REQUIRES: the page is all zeros.
void format_border(PageBuffer& buffer, uint8_t layer, size_t count, uint32_t bytes,
                   const SliceRange& range);

class TreeBuilder {
 public:
  TreeBuilder(PageOutput& pages, uint8_t layer) : pages_(pages), layer_(layer) {}

  /// Begins a range of records at `low`, which is past all earlier ranges.
  void begin_border(uint64_t low);
  /// Returns whether a border page is open: a range has begun, or a range has ended that may be
  /// joined with the next one.
  bool is_open() const { return is_open_; }
  /// Returns whether all added records are in written pages.
  bool is_empty() const { return held_.empty(); }
  /// Adds a record; the caller adds records in key order. The builder copies the item's bytes.
  /// REQUIRES: all records of a slice fit in one page.
  Result<void> add(const TreeItem& item);
  /// Returns the bytes in a page that the records of this slice take so far.
  uint32_t bytes_of_slice(uint64_t slice) const;
  enum class Ending : uint8_t {
    plain,
    joinable,  // another range begins at the end, and the two may share a page
    exact,     // a page ends at the end of the range, even if it has no records
  };
  /// Ends the range of records at `range.high`.
  Result<void> end_border(const SliceRange& range, Ending ending);

  /// Returns whether no range is open and no page of a level below `level` waits for its parent.
  bool may_add(uint32_t level) const;
  /// Adds an existing page, or a range without records if `page` is null. REQUIRES: may_add.
  Result<void> add_page(uint32_t level, uint64_t low, SnapshotPointer page);
  /// Writes parents for the pages at `level` that were added since the last call. No parent extends
  /// past range.high.
  Result<void> close(uint32_t level, const SliceRange& range);
  /// Closes levels until at most `limit` pages are left, all of one level. Returns them, and stores
  /// their level in `level`. If there are no records, returns a single null page.
  Result<std::vector<TreeChild>> finish(const SliceRange& range, size_t limit, uint32_t& level);

  /// Returns the added record if only one was added, or nothing in all other cases.
  std::optional<TreeItem> only_item() const;
  /// Writes an interior page at `level` + 1 whose only child is `page`. Both have this range.
  Result<SnapshotPointer> cover(uint32_t level, SnapshotPointer page, const SliceRange& range);

 private:
  struct Held {
    uint64_t slice;
    uint64_t vid;
    uint64_t next_layer;
    uint32_t at;  // offset in bytes_: suffix, then payload
    uint16_t remainder;
    uint16_t payload_bytes;
    uint32_t page_bytes;
  };

  TreeItem item_of(const Held& held) const;
  /// Returns whether a page may have as many slots as items [first, last) need.
  bool has_slots(size_t first, size_t last) const;
  bool fit_all() const;
  bool is_cut(size_t at) const { return held_[at - 1].slice != held_[at].slice; }
  bool is_small() const;
  size_t longest_prefix() const;
  size_t even_cut() const;
  Result<void> emit_overflow();
  Result<void> emit_border(size_t count, uint64_t high, bool high_is_end, bool keeps_empty = false);
  /// Writes the first `count` items as a page. `bytes`: that they take in it, their slots included.
  Result<SnapshotPointer> write_border(size_t count, uint32_t bytes, const SliceRange& range);
  Result<void> emit_interior(uint32_t level, size_t count, uint64_t high, bool high_is_end);
  Result<void> fill_gaps(uint32_t level, std::span<TreeChild> children, uint64_t high,
                         bool high_is_end);
  Result<SnapshotPointer> write_empty(uint32_t level, const SliceRange& range);
  std::vector<TreeChild>& children(uint32_t level);

  PageOutput& pages_;
  uint8_t layer_;
  bool is_open_ = false;  // a border page has begun
  uint64_t low_ = 0;      // low fence of the open border page
  std::vector<Held> held_;
  std::vector<std::byte> bytes_;  // first `used_` bytes: suffixes and payloads; the rest is spare
  size_t used_ = 0;
  uint32_t held_bytes_ = 0;  // bytes that the items of `held_` take in pages
  size_t boundary_ = 0;      // number of items in joinable ranges before boundary_fence_; 0: none
  uint64_t boundary_fence_ = 0;
  std::vector<std::vector<TreeChild>> levels_;
};

}  // namespace atolldb
