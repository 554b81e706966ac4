// Composes the ranges of a layer whose base page cannot be read (R56).
#include <fmt/format.h>

#include <memory>
#include <utility>

#include "engine/compose/layer_composer.h"
#include "engine/compose/log_input.h"
#include "shared/base/try.h"

namespace atolldb {

Result<FoundPage> LayerComposer::find_page(SnapshotPointer pointer, PageBuffer& page,
                                           const SliceRange& range) {
  const auto layer = static_cast<uint8_t>(prefix_.size() / 8);
  ATOLL_ASSIGN(auto found, work_.pages.find(pointer, page, PageType::mastertree_border,
                                            PageType::mastertree_interior, layer, work_.salvages));
  std::vector<HeldRecord> held = std::exchange(found.held, {});
  if (!found.is_readable && !work_.salvages) return found;
  // Drops the held records of other layers and partitions. The composers of those add them.
  std::erase_if(held, [&](const HeldRecord& record) {
    const std::string_view key = record.key();
    if (!key.starts_with(prefix_) || (!prefix_.empty() && key.size() == prefix_.size())) {
      return true;
    }
    return !range.contains(slice_of(std::as_bytes(std::span(key)).subspan(prefix_.size())));
  });
  if (!held.empty()) work_.logs.add_held(std::move(held));
  return found;
}

/// Ends the unfinished pages of all levels up to `level` at `low`, where the lost range begins.
Result<void> LayerComposer::end_before(uint32_t level, uint64_t low) {
  CHECK(low >= range_.low);
  const SliceRange before{0, low, false};
  if (builder_.is_open()) {
    ATOLL_TRY(builder_.end_border(before, TreeBuilder::Ending::plain));
  }
  for (uint32_t below = 0; below < level; ++below) {
    ATOLL_TRY(builder_.close(below, before));
  }
  return {};
}

/// Composes a range whose page cannot be read. A salvage composes the range from its log records
/// alone. Other jobs write a stand-in for the range, which names the page and holds the log
/// records. They keep an old stand-in of exactly this range if there are no new log records. They
/// never copy a pointer to an unreadable page, because an installer could then evict the volatile
/// page beside it.
Result<void> LayerComposer::compose_lost(SnapshotPointer pointer, FoundPage& found, uint32_t level,
                                         const SliceRange& range, bool is_whole) {
  CHECK(!found.is_readable && is_inside(range));
  report_lost(pointer, level, range, found.reason);
  if (work_.salvages) {
    items_.clear();
    ATOLL_TRY(compose_records(range, std::nullopt));
    return level == 0 ? Result<void>() : builder_.close(level - 1, range);
  }
  ATOLL_TRY(end_before(level, range.low));
  const SliceRange stood_for{found.low, found.high, found.high_is_end};
  if (found.was_lost) is_whole = equal(stood_for, range);
  if (is_stand_in(pointer) && is_whole && !has_log(range)) {
    work_.pages.count_stand_in();
    return builder_.add_page(level, range.low, pointer);
  }
  std::vector<std::byte> records;
  while (has_log(range)) {
    const LogRecord* log = work_.logs.current();
    const auto* bytes = reinterpret_cast<const std::byte*>(log);
    records.insert(records.end(), bytes, bytes + log->length);
    ATOLL_TRY(work_.logs.advance());
  }
  const auto page = std::make_unique<PageBuffer>();
  page->header().level = static_cast<uint8_t>(level);
  page->header().layer = static_cast<uint8_t>(prefix_.size() / 8);
  page->as<StandInPage>()->low = range.low;
  page->as<StandInPage>()->high = range.high_is_end ? 0 : range.high;
  page->as<StandInPage>()->high_is_end = range.high_is_end ? 1 : 0;
  ATOLL_ASSIGN(auto written, work_.pages.write_stand_in(*page, found.lost, records));
  CHECK(is_stand_in(written));
  return builder_.add_page(level, range.low, written);
}

Result<void> LayerComposer::skip_unbacked(const std::string& key) {
  if (!work_.salvages) return work_.logs.unbacked(key);
  if (!work_.on_unreadable) return {};
  work_.on_unreadable({work_.pages.storage_id(),
                       {},
                       0,
                       fmt::format("the record of key 0x{}", hex_of(key)),
                       "its updates lack the record that they change"});
  return {};
}

void LayerComposer::report_lost(SnapshotPointer page, uint32_t level, const SliceRange& range,
                                const std::string& reason) const {
  if (!work_.on_unreadable) return;
  work_.on_unreadable(
      {work_.pages.storage_id(), page, level, text_of_range(prefix_, range), reason});
}

}  // namespace atolldb
