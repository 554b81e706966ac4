// Composes the ranges of the first layer for which pages were captured (R75).
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/compose/layer_composer.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Composers read one of this number of pages that captured pages replace, to count its records.
constexpr uint64_t kSampledPart = 16;

}  // namespace

const CapturedPage* LayerComposer::next_captured(const SliceRange& range) const {
  if (!prefix_.empty() || work_.captured.empty()) return nullptr;
  const CapturedPage& page = work_.captured.front();
  return range.high_is_end || page.range.low < range.high ? &page : nullptr;
}

bool LayerComposer::is_captured_past(uint64_t slice) const {
  return last_captured_ && (last_captured_->high_is_end || last_captured_->high > slice);
}

bool LayerComposer::is_replaced_unread(std::span<const CapturedPage> captured, SnapshotPointer page,
                                       const SliceRange& range) const {
  if (!prefix_.empty() || work_.has_next_layers || is_stand_in(page)) return false;
  uint64_t covered = range.low;  // the captured pages cover the range up to this slice
  if (is_captured_past(range.low)) {
    if (last_captured_->high_is_end) return true;
    covered = last_captured_->high;
  }
  for (const CapturedPage& each : captured) {
    DCHECK(!each.page.is_null());
    if (!range.high_is_end && covered >= range.high) return true;
    if (each.range.low > covered) return false;
    if (each.range.high_is_end) return true;
    covered = std::max(covered, each.range.high);
  }
  return !range.high_is_end && covered >= range.high;
}

bool LayerComposer::is_off_the_bounds(const SliceRange& range) const {
  return is_inside(range) && range.low != range_.low && !range.high_is_end &&
         (range_.high_is_end || range.high != range_.high);
}

void LayerComposer::count_replaced_unread(SnapshotPointer pointer, const SliceRange& range) {
  CHECK(prefix_.empty() && !work_.has_next_layers && overlaps(range));
  count_replaced(pointer, range.low);
  const bool is_edge = !is_off_the_bounds(range);
  const bool is_sample = !is_edge && work_.captured_over++ % kSampledPart == 0;
  PageOutput& pages = work_.pages;
  const auto page = std::make_unique<PageBuffer>();
  bool is_read = pages.read_cached(pointer, *page);
  if (!is_read && (is_edge || is_sample)) {
    // A page that cannot be read needs no report: the new snapshot does not refer to it.
    const auto found = pages.find(pointer, *page, PageType::mastertree_border,
                                  PageType::mastertree_border, 0, false);
    is_read = found && found->is_readable;
  }
  RecordChange& records = pages.records();
  if (!is_read) {
    if (range.low >= range_.low) ++records.unread_pages;
    return;
  }
  // A page at a bound has records in two partitions. Each composer counts those in its range.
  const auto* border = page->as<BorderPage>();
  const uint32_t count = page->header().version().count();
  const auto inside =
      static_cast<uint64_t>(std::count_if(border->slices(), border->slices() + count,
                                          [&](uint64_t slice) { return range_.contains(slice); }));
  records.replaced += inside;
  if (!is_sample) return;
  ++records.sampled_pages;
  records.sampled_records += inside;
}

/// REQUIRES: has_captured(range).
Result<std::optional<SliceRange>> LayerComposer::compose_captured(const SliceRange& range,
                                                                  size_t& at) {
  CHECK(has_captured(range) && prefix_.empty());
  SliceRange rest = range;
  // Moves the begin of `rest` past the last captured page. Returns whether anything is left.
  const auto is_rest_left = [&] {
    if (last_captured_->high_is_end) return false;
    rest.low = last_captured_->high;
    return range.high_is_end || rest.low < range.high;
  };
  if (is_captured_past(range.low)) {
    ATOLL_TRY(skip_items(at));
    if (!is_rest_left()) return std::nullopt;
  }
  while (const CapturedPage* page = next_captured(rest)) {
    CHECK(page->range.low >= rest.low);
    if (page->range.low > rest.low) {
      ATOLL_TRY(pass(rest.low));
      builder_.begin_border(rest.low);
      ATOLL_TRY(add_cut_records({rest.low, page->range.low, false}, at));
    }
    ATOLL_TRY(add_captured(*page));
    ATOLL_TRY(skip_items(at));
    if (!is_rest_left()) return std::nullopt;
  }
  return rest;
}

/// Ends the open page where the captured page begins, and adds the captured page.
Result<void> LayerComposer::add_captured(const CapturedPage& page) {
  CHECK(is_inside(page.range) && !page.page.is_null());
  CHECK(!is_captured_past(page.range.low));  // captured pages do not overlap
  ATOLL_TRY(pass(page.range.low));
  if (builder_.is_open()) {
    ATOLL_TRY(builder_.end_border({0, page.range.low, false}, TreeBuilder::Ending::plain));
  }
  // Mappers have left out the log records of this range. Records that a stand-in has held may
  // remain (R56).
  if (has_log(page.range)) return no_place_for_captured(page.range, "there are log records");
  work_.pages.count_captured(page.page);
  work_.pages.records().written += page.records;
  last_captured_ = page.range;
  ATOLL_TRY(builder_.add_page(0, page.range.low, page.page));
  work_.captured = work_.captured.subspan(1);  // `page` is no longer valid
  return {};
}

/// Skips the base's records in the range of the last captured page, with their layers.
Result<void> LayerComposer::skip_items(size_t& at) {
  CHECK(last_captured_.has_value() && at <= items_.size());
  for (; at < items_.size() && last_captured_->contains(items_[at].slice); ++at) {
    if (!items_[at].is_next_layer()) continue;
    ATOLL_TRY(replace_layer(items_[at].next_layer, 1, UINT8_MAX));
  }
  return {};
}

/// Counts a page of the base as replaced (R67), and all pages below it, in the same layer and in
/// lower ones. `level`: upper bound of the page's level.
Result<void> LayerComposer::replace_layer(SnapshotPointer pointer, uint32_t layer, uint32_t level) {
  CHECK(layer > 0 && last_captured_.has_value());
  if (is_stand_in(pointer) || layer > UINT8_MAX) {
    return no_place_for_captured(*last_captured_, "a page of the base cannot be read");
  }
  const auto buffer = std::make_unique<PageBuffer>();
  ATOLL_ASSIGN(const auto found,
               work_.pages.find(pointer, *buffer, PageType::mastertree_border,
                                PageType::mastertree_interior, static_cast<uint8_t>(layer), false));
  if (!found.is_readable) return no_place_for_captured(*last_captured_, found.reason);
  const PageHeader& header = buffer->header();
  if (header.level > level) {
    return wrong_page(work_.pages.storage_id(), pointer, "its level is higher than its parent's");
  }
  work_.pages.count_replaced(pointer, layer);
  const uint32_t count = header.version().count();
  if (header.level != 0) {
    const auto* interior = buffer->as<InteriorPage>();
    for (uint32_t i = 0; i < std::min(count, uint32_t{kInteriorCapacity}); ++i) {
      const auto& word = interior->children[i].snapshot_word;
      const SnapshotPointer child(word.load(std::memory_order_relaxed));
      ATOLL_TRY(replace_layer(child, layer, header.level - 1u));
    }
    return {};
  }
  auto* border = buffer->as<BorderPage>();
  for (uint32_t slot = 0; slot < count; ++slot) {
    TreeRecord* record = border->record(slot);
    if (!Vid(record->head.vid.load(std::memory_order_relaxed)).is_next_layer()) {
      ++work_.pages.records().replaced;
      continue;
    }
    const auto& word = record->next_layer()->snapshot_word;
    const SnapshotPointer below(word.load(std::memory_order_relaxed));
    ATOLL_TRY(replace_layer(below, layer + 1, UINT8_MAX));
  }
  return {};
}

std::unexpected<Error> LayerComposer::no_place_for_captured(const SliceRange& range,
                                                            const std::string& reason) const {
  return make_error(
      ExitCode::failed,
      fmt::format("storage {}: {}: the captured pages do not fit the base: {}: the next snapshot "
                  "is made without captured pages",
                  work_.pages.storage_id(), text_of_range(prefix_, range), reason));
}

}  // namespace atolldb
