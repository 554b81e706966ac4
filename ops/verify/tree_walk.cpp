#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "engine/compose/log_input.h"
#include "engine/format/tree_key.h"
#include "engine/format/tree_page.h"
#include "engine/mastertree/build.h"
#include "ops/verify/page_walk.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

class TreeWalk {
 public:
  explicit TreeWalk(PageWalk& walk) : walk_(walk) {}

  /// Walks a whole layer. REQUIRES: prefix_ is the prefix of its keys.
  Result<void> layer(SnapshotPointer root, SnapshotPointer parent) {
    ++walk_.totals.layers;
    const auto buffer = std::make_unique<PageBuffer>();
    ATOLL_ASSIGN(auto read, walk_.read(root, parent, *buffer, PageType::mastertree_border,
                                       PageType::mastertree_interior, layer_number(),
                                       [&] { return text_of_range(prefix_, SliceRange{}); }));
    if (!read) return {};
    return content(*buffer, SliceRange{}, buffer->header().level);
  }

 private:
  /// Returns whether the walk visits these slices. Only the first layer is divided into ranges,
  /// because all keys of a deeper layer share their first 8 bytes.
  bool is_visited(uint64_t low, uint64_t last) const {
    return !prefix_.empty() || walk_.range.overlaps(low, last);
  }
  uint8_t layer_number() const { return static_cast<uint8_t>(prefix_.size() / 8); }

  Result<void> page(SnapshotPointer pointer, SnapshotPointer parent, const SliceRange& range,
                    uint32_t level) {
    const auto buffer = std::make_unique<PageBuffer>();
    const PageType type = level == 0 ? PageType::mastertree_border : PageType::mastertree_interior;
    ATOLL_ASSIGN(auto read, walk_.read(pointer, parent, *buffer, type, type, layer_number(),
                                       [&] { return text_of_range(prefix_, range); }));
    if (!read) return {};
    return content(*buffer, range, level);
  }

  Result<void> content(PageBuffer& buffer, const SliceRange& range, uint32_t level) {
    const auto* tree = buffer.as<TreePage>();
    const SliceRange found = range_of(*tree);
    if (tree->header.level != level ||
        (level == 0) != (tree->header.type == PageType::mastertree_border)) {
      return walk_.wrong(tree->header, fmt::format("its level is not {}", level));
    }
    if (found.low != range.low || found.high_is_end != range.high_is_end ||
        (!found.high_is_end && (found.high != range.high || found.low >= found.high))) {
      return walk_.wrong(tree->header, "its range differs from the range in its parent");
    }
    if (!tree->header.version().is_ascending()) {
      return walk_.wrong(tree->header, "its slots are not marked as ascending");
    }
    if (tree->twins[0].load(std::memory_order_relaxed) != 0 ||
        tree->twins[1].load(std::memory_order_relaxed) != 0) {
      return walk_.wrong(tree->header, "it has twins");
    }
    return level == 0 ? border(*buffer.as<BorderPage>()) : interior(*buffer.as<InteriorPage>());
  }

  Result<void> interior(InteriorPage& tree) {
    const uint32_t count = tree.header.version().count();
    if (count == 0 || count > kInteriorCapacity || tree.sorted_count() != count ||
        tree.separators[0] != tree.low) {
      return walk_.wrong(tree.header, fmt::format("it has {} children, {} of them sorted", count,
                                                  tree.sorted_count()));
    }
    if (!tree.has_guide()) return walk_.wrong(tree.header, "its guide differs from its separators");
    for (uint32_t i = 0; i < count; ++i) {
      const bool is_last = i + 1 == count;
      const SliceRange range{tree.separators[i], is_last ? tree.high : tree.separators[i + 1],
                             is_last && tree.high_is_end()};
      const SnapshotPointer child(tree.children[i].snapshot_word.load(std::memory_order_relaxed));
      if (tree.children[i].volatile_word.load(std::memory_order_relaxed) != 0) {
        return walk_.wrong(tree.header, "it has a volatile pointer");
      }
      if (tree.find(tree.separators[i], count) != i) {
        return walk_.wrong(tree.header, fmt::format("a search does not find child {}", i));
      }
      if (!is_visited(range.low, range.high_is_end ? UINT64_MAX : range.high - 1)) continue;
      auto done =
          page(child, SnapshotPointer(tree.header.self), range, uint32_t{tree.header.level} - 1);
      if (!done) return done;
    }
    return {};
  }

  Result<void> border(BorderPage& tree) {
    ++walk_.totals.leaf_pages;
    const uint32_t count = tree.header.version().count();
    const uint32_t limit = BorderPage::heap_limit(tree.slot_capacity());
    if (count > tree.slot_capacity() || tree.slot_capacity() > kBorderSlotBound ||
        tree.heap_begin < limit || tree.heap_begin > kPageBytes) {
      return walk_.wrong(
          tree.header, fmt::format("it has {} records in {} slots, or its heap has no valid begin",
                                   count, tree.slot_capacity()));
    }
    if (count > kMaxBorderSlots && tree.slices()[0] != tree.slices()[count - 1]) {
      return walk_.wrong(tree.header,
                         fmt::format("it has {} records, which have different slices", count));
    }
    if (!tree.has_guide(count)) {
      return walk_.wrong(tree.header, "its guide differs from the keys of its slots");
    }
    for (uint32_t slot = 0; slot < count; ++slot) {
      ATOLL_TRY(check_slot(tree, slot));
      const uint64_t slice = tree.slices()[slot];
      if (is_visited(slice, slice)) ATOLL_TRY(visit_slot(tree, slot));
    }
    return {};
  }

  Result<void> check_slot(BorderPage& tree, uint32_t slot) {
    const uint32_t at = tree.offsets()[slot];
    if (at % 8 != 0 || at < tree.heap_begin || at + TreeRecord::kHeadBytes > kPageBytes ||
        at + tree.record(slot)->bytes() > kPageBytes) {
      return walk_.wrong(tree.header, fmt::format("the record of slot {} is outside of it", slot));
    }
    const TreeRecord* record = tree.record(slot);
    const uint64_t slice = tree.slices()[slot];
    const bool is_layer = Vid(record->head.vid.load(std::memory_order_relaxed)).is_next_layer();
    if (record->head.slot != slot || !record->head.lock.is_unused() ||
        record->payload_bytes.load(std::memory_order_relaxed) > record->capacity ||
        is_layer != (record->head.remainder == kRemainderNextLayer)) {
      return walk_.wrong(tree.header, fmt::format("the record of slot {} is inconsistent", slot));
    }
    if (!tree.contains(slice)) {
      return walk_.wrong(tree.header,
                         fmt::format("the key of slot {} is outside of its range", slot));
    }
    const uint32_t length = length_class(record->head.remainder);
    if (length < 8 && length * 8 < 64 && (slice << (length * 8)) != 0) {
      return walk_.wrong(tree.header,
                         fmt::format("the key of slot {} has bytes after its end", slot));
    }
    if (slot == 0) return {};
    const uint64_t before = tree.slices()[slot - 1];
    if (before > slice ||
        (before == slice && length_class(tree.record(slot - 1)->head.remainder) >= length)) {
      return walk_.wrong(tree.header,
                         fmt::format("the key of slot {} is not after the previous one", slot));
    }
    return {};
  }

  Result<void> visit_slot(BorderPage& tree, uint32_t slot) {
    TreeRecord* record = tree.record(slot);
    const Vid vid(record->head.vid.load(std::memory_order_relaxed));
    const size_t above = prefix_.size();
    std::byte slice[8];
    put_slice(tree.slices()[slot], slice);
    prefix_.append(reinterpret_cast<const char*>(slice),
                   std::min<uint32_t>(8, record->head.remainder));
    Result<void> done;
    if (vid.is_next_layer()) {
      const DualPointer* pointer = record->next_layer();
      const SnapshotPointer root(pointer->snapshot_word.load(std::memory_order_relaxed));
      const bool is_wrong = pointer->volatile_word.load(std::memory_order_relaxed) != 0 ||
                            vid.word() != Vid::make(vid.epoch(), 0, Vid::kNextLayer).word() ||
                            record->capacity != sizeof(DualPointer);
      done = is_wrong ? walk_.wrong(
                            tree.header,
                            fmt::format("slot {} has an invalid pointer to the next layer", slot))
                      : layer(root, SnapshotPointer(tree.header.self));
    } else {
      prefix_.append(reinterpret_cast<const char*>(record->suffix()), record->suffix_bytes());
      done = walk_.visit(
          tree.header, {prefix_,
                        {record->payload(), record->payload_bytes.load(std::memory_order_relaxed)},
                        vid});
    }
    prefix_.resize(above);
    return done;
  }

  PageWalk& walk_;
  std::string prefix_;  // prefix of the keys of the current layer
};

}  // namespace

Result<void> walk_mastertree(PageWalk& walk) {
  return TreeWalk(walk).layer(walk.storage.root, walk.storage.root);
}

}  // namespace atolldb
