// Look-ahead of a LayerComposer: it requests base pages together, before they are needed.
#include <algorithm>
#include <array>
#include <cstring>

#include "engine/compose/layer_composer.h"

namespace atolldb {

uint32_t LayerComposer::request_children(const InteriorPage& page, uint32_t first,
                                         SnapshotPointer also) {
  const uint32_t count = page.header.version().count();
  CHECK(first < count && count <= kInteriorCapacity);
  // Requests border pages, and `also`. Other pages above border pages are few, and later requests
  // would cancel theirs.
  if (!work_.pages.has_ahead() || page.header.level != 1) return count;
  std::array<SnapshotPointer, PageOutput::kMaxRequests> wanted;
  std::array<uint32_t, PageOutput::kMaxRequests> children{};  // of the wanted pages
  size_t wanted_count = 0;
  if (!also.is_null()) {
    children[0] = first;
    wanted[wanted_count++] = also;
  }
  std::span<const SortKey> logs = work_.logs.coming();
  const auto is_below_prefix = [&](const LogRecord& log) {
    return log.key_bytes > prefix_.size() &&
           std::memcmp(log.key(), prefix_.data(), prefix_.size()) == 0;
  };
  const auto slice_at = [&](const SortKey& key) {
    return prefix_.empty() ? key.first : slice_of(key.record->key_span().subspan(prefix_.size()));
  };
  // Captured pages are in the first layer. Base pages of which they replace a part are read. Those
  // that they replace as a whole are read to count the layers below them (R67), or if they lie at a
  // bound of the partition.
  std::span<const CapturedPage> captured;
  if (prefix_.empty()) captured = work_.captured;
  uint32_t child = first;
  for (; child < count && wanted_count < wanted.size(); ++child) {
    const uint64_t low = page.separators[child];
    const bool is_last = child + 1 == count;
    const SliceRange range{low, is_last ? page.high : page.separators[child + 1],
                           is_last && page.high_is_end()};
    if (!overlaps(range)) continue;
    while (!logs.empty() && is_below_prefix(*logs[0].record) && slice_at(logs[0]) < low) {
      logs = logs.subspan(1);
    }
    while (!captured.empty() && !captured[0].range.high_is_end && captured[0].range.high <= low) {
      captured = captured.subspan(1);
    }
    const bool is_captured =
        is_captured_past(low) ||
        (!captured.empty() && (range.high_is_end || captured[0].range.low < range.high));
    const auto& word = page.children[child].snapshot_word;
    const SnapshotPointer pointer(word.load(std::memory_order_relaxed));
    const bool may_be_victim = work_.victims.may_be_at_or_below(pointer, 0);
    // If `logs` is empty, all known records belong to earlier children. Records that are not known
    // yet may belong to this child.
    if (logs.empty() && !may_be_victim && !is_captured) break;
    const bool has_logs =
        !logs.empty() && is_below_prefix(*logs[0].record) && range.contains(slice_at(logs[0]));
    const bool is_unread = is_captured && is_off_the_bounds(range) &&
                           is_replaced_unread(captured, pointer, clip(range));
    const bool is_read = (has_logs || may_be_victim || is_captured) && !is_unread;
    if (!is_read || is_stand_in(pointer)) continue;
    children[wanted_count] = child;
    wanted[wanted_count++] = pointer;
  }
  const size_t requested = work_.pages.request({wanted.data(), wanted_count});
  return requested == wanted_count ? child : children[requested];
}

/// Requests children of the next page of level 1, while the device reads the last requested
/// children of the current one. So neither the device nor the composer waits for the other at the
/// end of each page.
void LayerComposer::request_sibling(const std::optional<NextPage>& next) {
  if (!work_.pages.has_ahead() || !next || is_stand_in(next->page)) return;
  if (work_.logs.coming().empty()) return;
  const PageHeader* header = work_.pages.peek(next->page);
  // The composer reports what is wrong with the page when it gets there.
  if (header == nullptr || header->type != PageType::mastertree_interior || header->level != 1) {
    return;
  }
  const auto& page = *reinterpret_cast<const InteriorPage*>(header);
  const uint32_t count = header->version().count();
  if (count == 0 || count > kInteriorCapacity) return;
  const SnapshotPointer after = next->after;
  const bool is_wanted = !after.is_null() && !is_stand_in(after);
  work_.requested = {next->page, request_children(page, 0, is_wanted ? after : SnapshotPointer())};
}

}  // namespace atolldb
