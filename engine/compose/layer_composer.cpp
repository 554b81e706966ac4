#include "engine/compose/layer_composer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/try.h"

namespace atolldb {

namespace {

std::string text_of(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

bool is_beyond(const TreeItem& item) { return item.remainder > 8; }

TreeItem item_of(const CarriedRecord& record) {
  const LayerKey key(bytes_of(record.rest));
  TreeItem item;
  item.slice = key.slice;
  item.remainder = key.remainder;
  item.suffix = key.suffix();
  item.payload = bytes_of(record.payload);
  item.vid = record.vid;
  return item;
}

SliceRange range_of_child(const InteriorPage& page, uint32_t i) {
  const uint32_t count = page.header.version().count();
  DCHECK(i < count && count <= kInteriorCapacity);
  return i + 1 == count ? SliceRange{page.separators[i], page.high, page.high_is_end()}
                        : SliceRange{page.separators[i], page.separators[i + 1], false};
}

}  // namespace

LayerComposer::LayerComposer(TreeWork& work, std::string prefix, const SliceRange& range)
    : work_(work),
      prefix_(std::move(prefix)),
      range_(range),
      builder_(work.pages, static_cast<uint8_t>(prefix_.size() / 8)) {
  CHECK(prefix_.size() % 8 == 0 && prefix_.size() / 8 <= UINT8_MAX);
  CHECK(range_.high_is_end || range_.low < range_.high);
}

Result<std::vector<TreeChild>> LayerComposer::compose_partition(SnapshotPointer base,
                                                                uint32_t& level) {
  ATOLL_TRY(collect_fences());
  ATOLL_TRY(base.is_null() ? compose_records(range_, std::nullopt) : compose_tree(base));
  return builder_.finish(range_, 2 * kInteriorCapacity, level);
}

Result<LayerResult> LayerComposer::compose(SnapshotPointer base) {
  ATOLL_TRY(collect_fences());
  ATOLL_TRY(compose_tree(base));
  return finish();
}

Result<LayerResult> LayerComposer::compose(std::span<const CarriedRecord> carried,
                                           bool keeps_single) {
  CHECK(items_.empty() && range_.low == 0 && range_.high_is_end);
  DCHECK(std::ranges::is_sorted(carried, {}, &CarriedRecord::rest));
  ATOLL_TRY(collect_fences());
  for (const CarriedRecord& record : carried) items_.push_back(item_of(record));
  builder_.begin_border(range_.low);
  size_t at = 0;
  ATOLL_TRY(add_cut_records(range_, at));
  const std::optional<TreeItem> only = builder_.only_item();
  // R44: the snapshot word beside a volatile layer can only refer to the root of a layer. Without
  // such a root, the volatile layer and all pages above it could never be evicted.
  const bool is_layer = keeps_single || (fences_.has_root() && !fault::layers_of_two_only);
  if (only && !only->is_next_layer() && !is_layer) {
    std::string rest(8, '\0');
    put_slice(only->slice, reinterpret_cast<std::byte*>(rest.data()));
    rest.resize(std::min<size_t>(8, only->remainder));
    rest += text_of(only->suffix);
    return LayerResult{{}, CarriedRecord{std::move(rest), text_of(only->payload), only->vid}};
  }
  ATOLL_TRY(builder_.end_border(range_, TreeBuilder::Ending::plain));
  return finish();
}

Result<LayerResult> LayerComposer::finish() {
  uint32_t level = 0;
  ATOLL_ASSIGN(auto top, builder_.finish(range_, 1, level));
  CHECK(top.size() == 1 && top.front().low == 0);
  return LayerResult{top.front().page, std::nullopt};
}

Result<void> LayerComposer::collect_fences() {
  if (work_.fences == nullptr) return {};
  const Status status =
      work_.fences->fence_map_of(work_.pages.storage_id(), bytes_of(prefix_), range_, fences_);
  if (status == Status::ok) return {};
  return make_error(ExitCode::failed,
                    fmt::format("storage {}: collecting the ranges of volatile pages failed: {}",
                                work_.pages.storage_id(), to_string(status)));
}

/// Ends the new pages at `slice` on each level on which a volatile page begins there (R44). All
/// records and pages that are added later are at `slice` or after it.
Result<void> LayerComposer::pass(uint64_t slice) {
  const SliceRange before{0, slice, false};
  for (uint32_t level = 0; level < fences_.level_count(); ++level) {
    if (!fences_.is_fence(level, slice)) break;  // higher levels have no fence here either
    if (level != 0) {
      ATOLL_TRY(builder_.close(level - 1, before));
    } else if (builder_.is_open()) {
      ATOLL_TRY(builder_.end_border(before, TreeBuilder::Ending::exact));
    }
  }
  return {};
}

bool LayerComposer::is_log_below_prefix() const {
  const LogRecord* log = work_.logs.current();
  DCHECK(log != nullptr);
  return log->key_bytes > prefix_.size() &&
         std::memcmp(log->key(), prefix_.data(), prefix_.size()) == 0;
}

bool LayerComposer::is_inside(const SliceRange& range) const {
  return range.low >= range_.low &&
         (range_.high_is_end || (!range.high_is_end && range.high <= range_.high));
}

bool LayerComposer::overlaps(const SliceRange& range) const {
  return (range_.high_is_end || range.low < range_.high) &&
         (range.high_is_end || range_.low < range.high);
}

SliceRange LayerComposer::clip(const SliceRange& range) const {
  DCHECK(overlaps(range));
  SliceRange clipped = range;
  clipped.low = std::max(range.low, range_.low);
  if (range.high_is_end || (!range_.high_is_end && range_.high < range.high)) {
    clipped.high = range_.high;
    clipped.high_is_end = range_.high_is_end;
  }
  return clipped;
}

/// Composes the tree below a base root. The builder creates as many upper levels as it needs. If
/// nothing changes in the layer, the function reuses the root of the base.
Result<void> LayerComposer::compose_tree(SnapshotPointer root) {
  const auto page = std::make_unique<PageBuffer>();
  ATOLL_ASSIGN(auto found, find_page(root, *page, range_));
  if (!found.is_readable) {
    if (has_captured(range_)) return no_place_for_captured(range_, found.reason);
    return compose_lost(root, found, 0, range_, range_.low == 0 && range_.high_is_end);
  }
  const bool is_whole = range_.low == 0 && range_.high_is_end;
  bool is_kept =
      is_whole && !found.was_lost && !has_log() && !has_captured(range_) && children_fit(*page);
  if (is_kept) {
    ATOLL_ASSIGN(is_kept, needs_no_copy(root, *page));
  }
  if (is_kept) return builder_.add_page(page->header().level, 0, root);
  if (!found.was_lost) count_replaced(root, 0);
  return compose_page(root, *page, std::nullopt);
}

bool LayerComposer::children_fit(PageBuffer& page) const {
  const uint32_t level = page.header().level;
  if (level == 0) return fences_.is_empty();
  const auto* interior = page.as<InteriorPage>();
  const uint32_t count = interior->header.version().count();
  if (count == 0 || count > kInteriorCapacity) return false;  // compose_interior reports the error
  for (uint32_t i = 0; i < count; ++i) {
    if (!fences_.fits(level - 1, range_of_child(*interior, i))) return false;
  }
  return true;
}

Result<bool> LayerComposer::needs_no_copy(SnapshotPointer pointer, PageBuffer& page) const {
  DCHECK(!is_stand_in(pointer) && page.header().layer == prefix_.size() / 8);
  const Victims& victims = work_.victims;
  if (victims.has(pointer)) return false;
  if (!victims.may_be_at_or_below(pointer)) return true;
  if (page.header().level == 0) {
    ATOLL_ASSIGN(const bool leads, leads_to_victims(page));
    return !leads;
  }
  const auto* interior = page.as<InteriorPage>();
  const uint32_t count = std::min(page.header().version().count(), uint32_t{kInteriorCapacity});
  const uint32_t level = uint32_t{page.header().level} - 1;
  for (uint32_t i = 0; i < count; ++i) {
    const auto& word = interior->children[i].snapshot_word;
    const SnapshotPointer child(word.load(std::memory_order_relaxed));
    if (victims.may_be_at_or_below(child, level)) return false;
  }
  return true;
}

/// Returns whether the page leads to a page of a victim, or to a page that cannot be read. It reads
/// the pages below to find out. There are many border pages. If the composer copied all that may
/// lead to a victim, the limit of R74 (rewrites are bounded) would not hold.
Result<bool> LayerComposer::leads_to_victims(PageBuffer& page) const {
  const uint32_t layer = page.header().layer;
  const uint32_t count = page.header().version().count();
  if (page.header().level != 0) {
    const auto* interior = page.as<InteriorPage>();
    for (uint32_t i = 0; i < std::min(count, uint32_t{kInteriorCapacity}); ++i) {
      const SnapshotPointer child(
          interior->children[i].snapshot_word.load(std::memory_order_relaxed));
      ATOLL_ASSIGN(const bool has, has_victims_at(child, layer, uint32_t{page.header().level} - 1));
      if (has) return true;
    }
    return false;
  }
  auto* border = page.as<BorderPage>();
  for (uint32_t slot = 0; slot < count; ++slot) {
    TreeRecord* record = border->record(slot);
    if (!Vid(record->head.vid.load(std::memory_order_relaxed)).is_next_layer()) continue;
    const SnapshotPointer root(record->next_layer()->snapshot_word.load(std::memory_order_relaxed));
    ATOLL_ASSIGN(const bool has, has_victims_at(root, layer + 1, UINT8_MAX));
    if (has) return true;
  }
  return false;
}

/// Does the same as leads_to_victims, but also checks the page itself. REQUIRES: the page is in a
/// next layer. `level`: upper bound of the page's level. A page of a higher level counts as
/// unreadable; the composer that visits it reports it.
Result<bool> LayerComposer::has_victims_at(SnapshotPointer pointer, uint32_t layer,
                                           uint32_t level) const {
  CHECK(layer != 0);  // compose_node decides on each page of the first layer
  const Victims& victims = work_.victims;
  if (!victims.may_be_in_layer(pointer)) return false;
  if (victims.has(pointer) || is_stand_in(pointer) || layer > UINT8_MAX) return true;
  const auto page = std::make_unique<PageBuffer>();
  ATOLL_ASSIGN(const auto found,
               work_.pages.find(pointer, *page, PageType::mastertree_border,
                                PageType::mastertree_interior, static_cast<uint8_t>(layer), false));
  if (!found.is_readable || page->header().level > level) return true;
  return leads_to_victims(*page);
}

/// Counts a page of the base that begins at `low` and is not used. Two partitions may read it, and
/// only the one in which it begins counts it.
void LayerComposer::count_replaced(SnapshotPointer pointer, uint64_t low) {
  if (low < range_.low) return;
  work_.pages.count_replaced(pointer, static_cast<uint32_t>(prefix_.size() / 8));
}

/// Composes one page of the base. `next`: its right sibling below the same parent.
Result<void> LayerComposer::compose_node(SnapshotPointer pointer, uint32_t level,
                                         const SliceRange& range,
                                         const std::optional<NextPage>& next) {
  CHECK(overlaps(range) && (!next || (!range.high_is_end && next->range.low == range.high)));
  // Clips to this composer's range. If the parent was lost and is readable again, its first child
  // may begin before that range.
  const SliceRange clipped = clip(range);
  if (!is_captured_past(clipped.low)) ATOLL_TRY(pass(clipped.low));
  bool may_keep = is_inside(range) && !has_log(range) && !has_captured(range) &&
                  builder_.may_add(level) && fences_.fits(level, range);
  if (may_keep && !work_.victims.may_be_at_or_below(pointer, level)) {
    return builder_.add_page(level, range.low, pointer);
  }
  if (level == 0 && is_replaced_unread(work_.captured, pointer, clipped)) {
    count_replaced_unread(pointer, range);
    items_.clear();
    return compose_records(clipped, next);
  }
  const auto page = std::make_unique<PageBuffer>();
  ATOLL_ASSIGN(auto found, find_page(pointer, *page, clipped));
  if (!found.is_readable) {
    if (has_captured(clipped)) return no_place_for_captured(clipped, found.reason);
    return compose_lost(pointer, found, level, clipped, equal(clipped, range));
  }
  if (found.was_lost && has_captured(clipped)) {
    return no_place_for_captured(clipped, "a page of the base can be read again");
  }
  const bool is_border = page->header().type == PageType::mastertree_border;
  const bool is_expected = page->header().level == level && is_border == (level == 0) &&
                           equal(range_of(*page->as<TreePage>()), range);
  if (!found.was_lost && !is_expected) {
    return wrong_page(work_.pages.storage_id(), pointer,
                      "its level or range differs from what its parent says");
  }
  may_keep = may_keep && !found.was_lost;
  if (may_keep) {
    ATOLL_ASSIGN(may_keep, needs_no_copy(pointer, *page));
  }
  if (may_keep) return builder_.add_page(level, range.low, pointer);
  if (!found.was_lost) count_replaced(pointer, range.low);
  // A page that was lost and is readable again may cover more than its stand-in, so `range_` is
  // narrowed.
  const SliceRange outer = range_;
  if (found.was_lost) range_ = clipped;
  auto done = compose_page(pointer, *page, next);
  range_ = outer;
  if (!done) return done;
  // If a volatile page extends past the end of the base page, the new page does not end here.
  // Children of the next base page are added to it.
  const bool is_cut =
      clipped.high_is_end || (may_end(clipped) && fences_.may_cut(level, clipped.high));
  return level == 0 || !is_cut ? Result<void>() : builder_.close(level - 1, clipped);
}

Result<void> LayerComposer::compose_page(SnapshotPointer pointer, PageBuffer& page,
                                         const std::optional<NextPage>& next) {
  if (page.header().level != 0) return compose_interior(pointer, *page.as<InteriorPage>(), next);
  take_items(*page.as<BorderPage>());
  return compose_records(clip(range_of(*page.as<TreePage>())), next);
}

Result<void> LayerComposer::compose_interior(SnapshotPointer pointer, const InteriorPage& page,
                                             const std::optional<NextPage>& next_page) {
  const uint32_t count = page.header.version().count();
  if (count == 0 || count > kInteriorCapacity) {
    return wrong_page(work_.pages.storage_id(), pointer,
                      fmt::format("it has {} children, not 1 to {}", count, kInteriorCapacity));
  }
  const auto range_at = [&](uint32_t i) { return range_of_child(page, i); };
  const auto child_at = [&](uint32_t i) {
    return SnapshotPointer(page.children[i].snapshot_word.load(std::memory_order_relaxed));
  };
  uint32_t requested = work_.requested.page == pointer ? work_.requested.end : 0;
  bool requests_sibling = page.header.level == 1;
  for (uint32_t i = 0; i < count; ++i) {
    if (!overlaps(range_at(i))) continue;
    if (i >= requested) requested = std::max(request_children(page, i), i + 1);
    if (requested == count && std::exchange(requests_sibling, false)) request_sibling(next_page);
    std::optional<NextPage> next;
    if (i + 1 < count && overlaps(range_at(i + 1))) {
      next = {range_at(i + 1), child_at(i + 1), {}};
      if (i + 2 < count && overlaps(range_at(i + 2))) next->after = child_at(i + 2);
    }
    ATOLL_TRY(work_.pages.check_child(pointer, child_at(i)));
    ATOLL_TRY(compose_node(child_at(i), uint32_t{page.header.level} - 1, range_at(i), next));
  }
  return {};
}

/// Collects the slots of a page that lie in the composer's range.
void LayerComposer::take_items(const BorderPage& page) {
  items_.clear();
  auto& from = const_cast<BorderPage&>(page);
  const uint32_t count = page.header.version().count();
  for (uint32_t slot = 0; slot < count; ++slot) {
    if (!range_.contains(page.slices()[slot])) continue;
    TreeRecord* record = from.record(slot);
    TreeItem item;
    item.slice = page.slices()[slot];
    item.vid = Vid(record->head.vid.load(std::memory_order_relaxed));
    item.remainder = record->head.remainder;
    if (item.vid.is_next_layer()) {
      item.remainder = kRemainderNextLayer;
      item.next_layer =
          SnapshotPointer(record->next_layer()->snapshot_word.load(std::memory_order_relaxed));
    } else {
      item.suffix = {record->suffix(), record->suffix_bytes()};
      item.payload = {record->payload(), record->payload_bytes.load(std::memory_order_relaxed)};
      ++work_.pages.records().replaced;
    }
    items_.push_back(item);
  }
}

Result<void> LayerComposer::compose_records(const SliceRange& range,
                                            const std::optional<NextPage>& next) {
  CHECK(is_inside(range));
  size_t at = 0;
  if (!has_captured(range)) return compose_rest(range, at, next);
  ATOLL_ASSIGN(const auto rest, compose_captured(range, at));
  return rest ? compose_rest(*rest, at, next) : Result<void>();
}

/// Composes the records of a range without captured pages, from the item `at` on.
Result<void> LayerComposer::compose_rest(const SliceRange& range, size_t at,
                                         const std::optional<NextPage>& next) {
  ATOLL_TRY(pass(range.low));
  builder_.begin_border(range.low);
  ATOLL_TRY(add_cut_records(range, at));
  const bool is_at_end = range.high_is_end || (!range_.high_is_end && range.high == range_.high);
  // If a volatile page extends past the end of the range, the new page does not end here.
  if (!is_at_end && !fences_.may_cut(0, range.high)) return {};
  if (!is_at_end && fences_.is_fence(0, range.high)) {
    return builder_.end_border(range, TreeBuilder::Ending::exact);
  }
  // The page may go on in the next range if that has no captured page. It does so if the next range
  // is rewritten anyway, or if the page has no records yet.
  const bool is_next_rewritten =
      next && !has_captured(next->range) && (work_.victims.has(next->page) || has_log(next->range));
  const bool may_join =
      is_next_rewritten || (next && !has_captured(next->range) && builder_.is_empty());
  return builder_.end_border(range,
                             may_join ? TreeBuilder::Ending::joinable : TreeBuilder::Ending::plain);
}

/// Adds the records of a range and cuts pages where volatile pages begin.
Result<void> LayerComposer::add_cut_records(const SliceRange& range, size_t& at) {
  DCHECK(builder_.is_open());
  SliceRange part = range;
  uint64_t fence = 0;
  while (fences_.next_fence(0, part.low, fence) && (range.high_is_end || fence < range.high)) {
    part.high = fence;
    part.high_is_end = false;
    ATOLL_TRY(add_records(part, at));
    ATOLL_TRY(pass(fence));
    builder_.begin_border(fence);
    part = range;
    part.low = fence;
  }
  return add_records(part, at);
}

Result<void> LayerComposer::add_records(const SliceRange& range, size_t& at) {
  const auto has_item = [&] { return at < items_.size() && range.contains(items_[at].slice); };
  while (has_item() || has_log(range)) {
    const bool is_log_first = has_log(range) && (!has_item() || log_slice() < items_[at].slice);
    const uint64_t slice = is_log_first ? log_slice() : items_[at].slice;
    DCHECK(range.contains(slice));
    ATOLL_TRY(compose_slice(slice, at));
  }
  return {};
}

/// Composes all records of a slice. Advances `at` past the base's records of the slice.
Result<void> LayerComposer::compose_slice(uint64_t slice, size_t& at) {
  constexpr uint32_t kNone = 9;
  for (;;) {
    const bool is_here = at < items_.size() && items_[at].slice == slice && !is_beyond(items_[at]);
    const uint32_t base_length = is_here ? items_[at].remainder : kNone;
    uint32_t log_length = kNone;
    if (has_log_at(slice)) log_length = length_class(static_cast<uint32_t>(log_rest().size()));
    const uint32_t length = std::min(base_length, log_length);
    if (length == kNone) break;
    const TreeItem* base = base_length == length ? &items_[at++] : nullptr;
    ATOLL_TRY(log_length == length ? compose_record(slice, static_cast<uint16_t>(length), base)
                                   : builder_.add(*base));
  }
  const size_t first = at;
  while (at < items_.size() && items_[at].slice == slice) ++at;
  if (first == at && !has_log_at(slice)) return {};
  return compose_beyond(slice, std::span(items_).subspan(first, at - first));
}

/// Composes a record whose key ends in this layer and that has log records.
Result<void> LayerComposer::compose_record(uint64_t slice, uint16_t remainder,
                                           const TreeItem* base) {
  DCHECK(remainder <= 8 && has_log_at(slice));
  RecordFold& fold = work_.fold;
  base == nullptr ? fold.begin_absent() : fold.begin(base->vid, base->payload);
  while (has_log_at(slice) && log_rest().size() == remainder) {
    fold.apply(*work_.logs.current());
    ATOLL_TRY(work_.logs.advance());
  }
  if (fold.is_unbacked()) {
    std::byte bytes[8];
    put_slice(slice, bytes);
    const std::string key = prefix_ + text_of(Bytes(bytes).first(remainder));
    return skip_unbacked(key);
  }
  // Each page has the snapshot's epoch as newest removed version (R43), so no record may be newer.
  DCHECK(fold.vid().epoch() <= work_.epoch);
  if (!fold.exists()) return {};
  TreeItem item;
  item.slice = slice;
  item.remainder = remainder;
  item.payload = fold.payload();
  item.vid = fold.vid();
  return builder_.add(item);
}

/// Composes the records of a slice whose keys extend past the slice. A single record stays in this
/// page. Several move to a lower layer.
Result<void> LayerComposer::compose_beyond(uint64_t slice, std::span<const TreeItem> base) {
  DCHECK(!base.empty() || has_log_at(slice));
  if (!base.empty() && base.front().is_next_layer()) {
    const SnapshotPointer root = base.front().next_layer;
    if (!has_log_at(slice) && !work_.victims.may_be_in_layer(root)) {
      return builder_.add(base.front());
    }
    return add_sublayer(slice, below(slice).compose(root));
  }
  std::vector<CarriedRecord> carried;
  const bool is_log_first =
      has_log_at(slice) &&
      (base.empty() || compare_keys(log_rest().subspan(8), base[0].suffix) <= 0);
  if (is_log_first) {
    const std::string rest = text_of(log_rest().subspan(8));
    const bool has_base = !base.empty() && compare_keys(bytes_of(rest), base[0].suffix) == 0;
    has_base ? work_.fold.begin(base[0].vid, base[0].payload) : work_.fold.begin_absent();
    ATOLL_TRY(fold_logs(slice, bytes_of(rest)));
    if (has_base) base = base.subspan(1);
    const bool is_alone = base.empty() && !has_log_at(slice);
    if (is_alone && !work_.fold.exists()) return {};
    if (is_alone) {
      return add_beyond({slice,
                         static_cast<uint16_t>(8 + rest.size()),
                         bytes_of(rest),
                         work_.fold.payload(),
                         work_.fold.vid(),
                         {}});
    }
    if (work_.fold.exists()) {
      carried.push_back({rest, text_of(work_.fold.payload()), work_.fold.vid()});
    }
  } else if (base.size() == 1 && !has_log_at(slice)) {
    return add_beyond(base.front());
  }
  for (const TreeItem& item : base) {
    carried.push_back({text_of(item.suffix), text_of(item.payload), item.vid});
  }
  return add_sublayer(slice, below(slice).compose(carried, false));
}

/// Applies all log records of one key. `rest`: the bytes of the key after the slice.
Result<void> LayerComposer::fold_logs(uint64_t slice, Bytes rest) {
  while (has_log_at(slice) && log_rest().size() == 8 + rest.size() &&
         compare_keys(log_rest().subspan(8), rest) == 0) {
    work_.fold.apply(*work_.logs.current());
    ATOLL_TRY(work_.logs.advance());
  }
  DCHECK(work_.fold.vid().epoch() <= work_.epoch);  // no record is newer (R43)
  if (!work_.fold.is_unbacked()) return {};
  work_.fold.begin_absent();
  return skip_unbacked(full_key(slice, rest));
}

Result<void> LayerComposer::add_sublayer(uint64_t slice, Result<LayerResult> below) {
  if (!below) return std::unexpected(std::move(below).error());
  CHECK(!below->single || below->root.is_null());
  if (below->single) {
    const Bytes rest = bytes_of(below->single->rest);
    return add_beyond({slice,
                       static_cast<uint16_t>(8 + rest.size()),
                       rest,
                       bytes_of(below->single->payload),
                       below->single->vid,
                       {}});
  }
  if (below->root.is_null()) return {};
  const Vid vid = Vid::make(work_.epoch, 0, Vid::kNextLayer);
  return builder_.add({slice, kRemainderNextLayer, {}, {}, vid, below->root});
}

/// Adds a record whose key extends past the slice. If the record does not fit beside the other
/// records of its slice, it gets a layer of its own. This can happen if the record was in a lower
/// layer when it was committed: there it shared no page with the other records.
Result<void> LayerComposer::add_beyond(const TreeItem& item) {
  DCHECK(is_beyond(item) && !item.is_next_layer());
  if (builder_.bytes_of_slice(item.slice) + item.page_bytes() <= kBorderUsableBytes) {
    return builder_.add(item);
  }
  const CarriedRecord carried{text_of(item.suffix), text_of(item.payload), item.vid};
  return add_sublayer(item.slice, below(item.slice).compose({&carried, 1}, true));
}

LayerComposer LayerComposer::below(uint64_t slice) const {
  return LayerComposer(work_, full_key(slice, {}), SliceRange{});
}

std::string LayerComposer::full_key(uint64_t slice, Bytes rest) const {
  std::byte bytes[8];
  put_slice(slice, bytes);
  return prefix_ + text_of(bytes) + text_of(rest);
}

}  // namespace atolldb
