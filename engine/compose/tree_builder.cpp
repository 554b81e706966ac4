#include "engine/compose/tree_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "engine/compose/record_fold.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

void set_header(PageHeader& header, PageType type, uint8_t layer, uint32_t level, size_t count) {
  CHECK(level <= UINT8_MAX && count <= UINT16_MAX);
  header.type = type;
  header.layer = layer;
  header.level = static_cast<uint8_t>(level);
  header.version_word.store(PageVersion::make(0, count, PageVersion::kAscending).word(),
                            std::memory_order_relaxed);
}

}  // namespace

void format_border(PageBuffer& buffer, uint8_t layer, size_t count, uint32_t bytes,
                   const SliceRange& range) {
  const auto slots = static_cast<uint32_t>(count);
  auto* page = buffer.as<BorderPage>();
  set_header(buffer.header(), PageType::mastertree_border, layer, 0, count);
  page->set_range(range.low, range.high, range.high_is_end);
  page->set_slot_capacity(BorderPage::capacity_with(slots, bytes - slots * kSlotBytes));
  page->heap_begin = static_cast<uint16_t>(kPageBytes);
}

void TreeBuilder::begin_border(uint64_t low) {
  if (is_open_) return;  // the new range continues the open page
  CHECK(held_.empty() && low >= low_);
  is_open_ = true;
  low_ = low;
}

Result<void> TreeBuilder::add(const TreeItem& item) {
  CHECK(is_open_ && item.slice >= low_);
  CHECK(held_.empty() || held_.back().slice <= item.slice);
  DCHECK(item.suffix.size() == TreeRecord::suffix_bytes_for(item.remainder));
  DCHECK(item.payload.size() <= RecordFold::kMaxPayloadBytes);
  DCHECK(item.is_next_layer() || item.next_layer.is_null());
  Held held{};
  held.slice = item.slice;
  held.vid = item.vid.word();
  held.next_layer = item.next_layer.word();
  held.at = static_cast<uint32_t>(used_);
  held.remainder = item.remainder;
  held.payload_bytes = static_cast<uint16_t>(item.payload.size());
  held.page_bytes = item.page_bytes();
  const size_t more = item.suffix.size() + item.payload.size();
  if (bytes_.size() - used_ < more) [[unlikely]] {
    bytes_.resize(used_ + more + 2 * kPageBytes);
  }
  std::byte* into = bytes_.data() + used_;
  copy_bytes(into, item.suffix.data(), item.suffix.size());
  copy_bytes(into + item.suffix.size(), item.payload.data(), item.payload.size());
  used_ += more;
  held_.push_back(held);
  held_bytes_ += held.page_bytes;
  const bool is_too_much =
      held_bytes_ > 2 * kBorderUsableBytes || held_.size() > 2 * kMaxBorderSlots;
  return is_too_much ? emit_overflow() : Result<void>();
}

uint32_t TreeBuilder::bytes_of_slice(uint64_t slice) const {
  uint32_t bytes = 0;
  for (size_t i = held_.size(); i > 0 && held_[i - 1].slice == slice; --i) {
    bytes += held_[i - 1].page_bytes;
  }
  return bytes;
}

TreeItem TreeBuilder::item_of(const Held& held) const {
  const uint32_t suffix_bytes = TreeRecord::suffix_bytes_for(held.remainder);
  DCHECK(held.at + suffix_bytes + held.payload_bytes <= used_);
  const std::byte* bytes = bytes_.data() + held.at;
  return {held.slice,
          held.remainder,
          {bytes, suffix_bytes},
          {bytes + suffix_bytes, held.payload_bytes},
          Vid(held.vid),
          SnapshotPointer(held.next_layer)};
}

std::optional<TreeItem> TreeBuilder::only_item() const {
  const bool is_only = held_.size() == 1 && levels_.empty();
  return is_only ? std::optional(item_of(held_.front())) : std::nullopt;
}

bool TreeBuilder::has_slots(size_t first, size_t last) const {
  DCHECK(first <= last && last <= held_.size());
  return last - first <= kMaxBorderSlots || held_[first].slice == held_[last - 1].slice;
}

bool TreeBuilder::fit_all() const {
  return held_bytes_ <= kBorderUsableBytes && has_slots(0, held_.size());
}

bool TreeBuilder::is_small() const {
  return held_bytes_ <= kBorderUsableBytes / 2 && held_.size() <= kMaxBorderSlots / 2;
}

/// Returns the largest number of items that fit in one page and leave an item for the next page.
/// Returns 0 if not even the first slice fits.
size_t TreeBuilder::longest_prefix() const {
  size_t best = 0;
  uint32_t bytes = 0;
  for (size_t at = 1; at < held_.size(); ++at) {
    bytes += held_[at - 1].page_bytes;
    if (bytes > kBorderUsableBytes || !has_slots(0, at)) break;
    if (is_cut(at)) best = at;
  }
  return best;
}

/// Returns the cut that divides all items into two pages of about equal size, or 0 if two pages do
/// not suffice.
size_t TreeBuilder::even_cut() const {
  size_t best = 0;
  uint32_t best_distance = ~uint32_t{0};
  uint32_t bytes = 0;
  for (size_t at = 1; at < held_.size(); ++at) {
    bytes += held_[at - 1].page_bytes;
    const uint32_t other = held_bytes_ - bytes;
    if (!is_cut(at) || bytes > kBorderUsableBytes || other > kBorderUsableBytes) continue;
    if (!has_slots(0, at) || !has_slots(at, held_.size())) continue;
    const uint32_t distance = bytes > other ? bytes - other : other - bytes;
    if (distance < best_distance) {
      best = at;
      best_distance = distance;
    }
  }
  return best;
}

Result<void> TreeBuilder::emit_overflow() {
  CHECK(!held_.empty());
  if (boundary_ != 0) return emit_border(boundary_, boundary_fence_, false);
  const size_t count = longest_prefix();
  if (count == 0) {
    return make_error(
        ExitCode::corruption,
        fmt::format("storage {}: the records of slice 0x{:016x} in layer {} do not fit in a page "
                    "of {} bytes together: no commit can have made them: the log is damaged",
                    pages_.storage_id(), held_.front().slice, layer_, kPageBytes));
  }
  return emit_border(count, fence_between(held_[count - 1].slice, held_[count].slice), false);
}

Result<void> TreeBuilder::end_border(const SliceRange& range, Ending ending) {
  CHECK(is_open_ && (range.high_is_end || range.high > low_));
  CHECK(ending != Ending::joinable || !range.high_is_end);
  if (ending == Ending::joinable && (held_.empty() || is_small())) {
    boundary_ = held_.size();
    boundary_fence_ = range.high;
    return {};
  }
  while (!held_.empty() && !fit_all()) {
    const size_t cut = boundary_ == 0 ? even_cut() : 0;
    ATOLL_TRY(cut == 0
                  ? emit_overflow()
                  : emit_border(cut, fence_between(held_[cut - 1].slice, held_[cut].slice), false));
  }
  auto emitted = emit_border(held_.size(), range.high, range.high_is_end, ending == Ending::exact);
  is_open_ = false;
  return emitted;
}

/// Writes the first `count` items as a page that ends at `high`. The next page begins there.
Result<void> TreeBuilder::emit_border(size_t count, uint64_t high, bool high_is_end,
                                      bool keeps_empty) {
  CHECK(count <= held_.size());
  CHECK(count == held_.size() || held_[count].slice >= high);
  uint32_t bytes = 0;
  for (size_t i = 0; i < count; ++i) bytes += held_[i].page_bytes;
  CHECK(bytes <= kBorderUsableBytes && bytes <= held_bytes_);
  SnapshotPointer page;
  if (count != 0 || keeps_empty) {
    ATOLL_ASSIGN(auto written, write_border(count, bytes, {low_, high, high_is_end}));
    page = written;
  }
  auto added = add_page(0, low_, page);
  held_bytes_ -= bytes;
  const uint32_t begin = count == held_.size() ? static_cast<uint32_t>(used_) : held_[count].at;
  used_ -= begin;
  if (used_ != 0) std::memmove(bytes_.data(), bytes_.data() + begin, used_);
  held_.erase(held_.begin(), held_.begin() + static_cast<ptrdiff_t>(count));
  for (Held& held : held_) held.at -= begin;
  CHECK(!held_.empty() || (held_bytes_ == 0 && used_ == 0));
  boundary_ = 0;
  low_ = high;
  return added;
}

Result<SnapshotPointer> TreeBuilder::write_border(size_t count, uint32_t bytes,
                                                  const SliceRange& range) {
  PageBuffer buffer;
  format_border(buffer, layer_, count, bytes, range);
  auto* page = buffer.as<BorderPage>();
  for (uint32_t slot = 0; slot < count; ++slot) {
    const TreeItem item = item_of(held_[slot]);
    const auto payload_bytes = static_cast<uint32_t>(item.payload.size());
    const uint32_t capacity = item.is_next_layer()
                                  ? static_cast<uint32_t>(sizeof(DualPointer))
                                  : TreeRecord::capacity_for(item.remainder, payload_bytes);
    TreeRecord* record =
        write_slot(page, slot, item.slice, item.remainder, item.suffix.data(), capacity, item.vid);
    if (item.is_next_layer()) {
      record->next_layer()->snapshot_word.store(item.next_layer.word(), std::memory_order_relaxed);
      continue;
    }
    record->payload_bytes.store(static_cast<uint16_t>(payload_bytes), std::memory_order_relaxed);
    copy_bytes(record->payload(), item.payload.data(), payload_bytes);
    ++pages_.records().written;
  }
  return pages_.write(buffer);
}

std::vector<TreeChild>& TreeBuilder::children(uint32_t level) {
  if (levels_.size() <= level) levels_.resize(level + 1);
  return levels_[level];
}

bool TreeBuilder::may_add(uint32_t level) const {
  if (is_open_) return false;
  for (uint32_t below = 0; below < level && below < levels_.size(); ++below) {
    if (!levels_[below].empty()) return false;
  }
  return true;
}

Result<void> TreeBuilder::add_page(uint32_t level, uint64_t low, SnapshotPointer page) {
  std::vector<TreeChild>& here = children(level);
  // Adjacent empty ranges are merged into one.
  if (page.is_null() && !here.empty() && here.back().page.is_null()) return {};
  if (!here.empty() && here.back().low >= low) {
    return make_error(ExitCode::failed,
                      fmt::format("storage {}: pages of level {} in layer {} overlap at slice "
                                  "0x{:016x}: the snapshot is not made",
                                  pages_.storage_id(), level, layer_, low));
  }
  here.push_back({low, page});
  if (here.size() <= 2 * kInteriorCapacity) return {};
  return emit_interior(level, kInteriorCapacity, here[kInteriorCapacity].low, false);
}

Result<void> TreeBuilder::close(uint32_t level, const SliceRange& range) {
  if (children(level).empty()) return {};
  const TreeChild first = children(level).front();
  if (children(level).size() == 1 && first.page.is_null()) {
    children(level).clear();
    return add_page(level + 1, first.low, {});
  }
  while (!children(level).empty()) {
    const std::vector<TreeChild>& here = children(level);
    const bool is_last = here.size() <= kInteriorCapacity;
    const size_t count = is_last ? here.size() : (here.size() + 1) / 2;
    const uint64_t high = is_last ? range.high : here[count].low;
    ATOLL_TRY(emit_interior(level, count, high, is_last && range.high_is_end));
  }
  return {};
}

/// Writes a parent for the first `count` pages at `level`. Its range ends at `high`.
Result<void> TreeBuilder::emit_interior(uint32_t level, size_t count, uint64_t high,
                                        bool high_is_end) {
  CHECK(count > 0 && count <= kInteriorCapacity && count <= children(level).size());
  const auto first = children(level).begin();
  std::vector<TreeChild> taken(first, first + static_cast<ptrdiff_t>(count));
  children(level).erase(first, first + static_cast<ptrdiff_t>(count));
  ATOLL_TRY(fill_gaps(level, taken, high, high_is_end));
  PageBuffer buffer;
  auto* page = buffer.as<InteriorPage>();
  set_header(buffer.header(), PageType::mastertree_interior, layer_, level + 1, count);
  page->set_range(taken.front().low, high, high_is_end);
  for (uint32_t i = 0; i < count; ++i) {
    page->separators[i] = taken[i].low;
    page->children[i].snapshot_word.store(taken[i].page.word(), std::memory_order_relaxed);
  }
  page->set_sorted(static_cast<uint32_t>(count));
  ATOLL_ASSIGN(auto written, pages_.write(buffer));
  return add_page(level + 1, taken.front().low, written);
}

/// Writes empty pages for children without records, because the ranges of their neighbours are
/// already fixed.
Result<void> TreeBuilder::fill_gaps(uint32_t level, std::span<TreeChild> children_here,
                                    uint64_t high, bool high_is_end) {
  for (size_t i = 0; i < children_here.size(); ++i) {
    if (!children_here[i].page.is_null()) continue;
    const bool is_last = i + 1 == children_here.size();
    const SliceRange range{children_here[i].low, is_last ? high : children_here[i + 1].low,
                           is_last && high_is_end};
    ATOLL_ASSIGN(auto written, write_empty(level, range));
    children_here[i].page = written;
  }
  return {};
}

Result<SnapshotPointer> TreeBuilder::write_empty(uint32_t level, const SliceRange& range) {
  ATOLL_ASSIGN(SnapshotPointer page, write_border(0, 0, range));
  for (uint32_t below = 0; below < level; ++below) {
    ATOLL_ASSIGN(page, cover(below, page, range));
  }
  return page;
}

Result<SnapshotPointer> TreeBuilder::cover(uint32_t level, SnapshotPointer child,
                                           const SliceRange& range) {
  CHECK(!child.is_null());
  PageBuffer buffer;
  auto* page = buffer.as<InteriorPage>();
  set_header(buffer.header(), PageType::mastertree_interior, layer_, level + 1, 1);
  page->set_range(range.low, range.high, range.high_is_end);
  page->separators[0] = range.low;
  page->children[0].snapshot_word.store(child.word(), std::memory_order_relaxed);
  page->set_sorted(1);
  return pages_.write(buffer);
}

Result<std::vector<TreeChild>> TreeBuilder::finish(const SliceRange& range, size_t limit,
                                                   uint32_t& level) {
  for (level = 0;; ++level) {
    const bool is_top = level + 1 >= levels_.size();
    if (is_top && children(level).size() <= limit) break;
    ATOLL_TRY(close(level, range));
  }
  CHECK(!is_open_ && held_.empty());
  std::vector<TreeChild> top = std::move(children(level));
  CHECK(!top.empty() && top.size() <= limit);
  levels_.clear();
  if (top.size() > 1) {
    ATOLL_TRY(fill_gaps(level, top, range.high, range.high_is_end));
  }
  return top;
}

}  // namespace atolldb
