#include "ops/verify/snapshot_split.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/compose/page_output.h"
#include "engine/format/array_page.h"
#include "engine/format/sequential_page.h"
#include "engine/format/tree_page.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Minimum number of pages of an upper level per range, so that the ranges have about the same
/// size.
constexpr uint64_t kPagesPerRange = 4;

/// Returns up to `count` ranges that cover all numbers. Each begins at a value of `lows`, and each
/// has about equally many of these values. REQUIRES: `lows` ascends and begins with 0.
std::vector<WalkRange> ranges_of(const std::vector<uint64_t>& lows, uint64_t count) {
  CHECK(!lows.empty() && lows.front() == 0 && count != 0);
  count = std::min<uint64_t>(count, lows.size());
  std::vector<WalkRange> ranges;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t low = lows[lows.size() * i / count];
    if (!ranges.empty()) {
      CHECK(low > ranges.back().low);
      ranges.back().last = low - 1;
    }
    ranges.push_back({low, UINT64_MAX});
  }
  return ranges;
}

/// Divides `pages` numbers evenly into ranges that begin at multiples of `step`.
std::vector<WalkRange> even_ranges(uint64_t pages, uint64_t step, uint32_t count) {
  CHECK(step != 0 && count != 0);
  const uint64_t parts = std::clamp<uint64_t>(pages / kMinPagesPerRange, 1, count);
  std::vector<uint64_t> lows;
  for (uint64_t i = 0; i < parts; ++i) {
    // This is pages * i / parts. It cannot overflow, because `parts` has 32 bits.
    lows.push_back((pages / parts * i + pages % parts * i / parts) * step);
  }
  return ranges_of(lows, parts);
}

std::vector<WalkRange> split_array(const SnapshotWalkStorage& storage, uint32_t count) {
  const ArrayShape shape(storage.record_count, storage.payload_bytes);
  const uint64_t leaves =
      (storage.record_count + shape.records_per_leaf - 1) / shape.records_per_leaf;
  return even_ranges(leaves, shape.records_per_leaf, count);
}

std::vector<WalkRange> split_sequential(const SnapshotFiles& files,
                                        const SnapshotWalkStorage& storage, uint32_t count) {
  const auto buffer = std::make_unique<PageBuffer>();
  const auto* root = buffer->as<SequentialSnapshotRoot>();
  uint64_t pages = 0;
  for (SnapshotPointer at = storage.root; !at.is_null(); at = SnapshotPointer(root->previous)) {
    if (!files.read(at, &buffer->header()) || !root->is_sound(at)) break;
    for (uint64_t i = 0; i < root->count; ++i) {
      // A sound run has at most 2^32 pages, so the sum does not overflow.
      pages = std::min(pages + root->runs[i].pages, kMaxDividedRunPages);
    }
    if (pages == kMaxDividedRunPages) break;
  }
  return even_ranges(pages, 1, count);
}

struct TreePart {
  uint64_t low = 0;
  SnapshotPointer page;
};

/// Returns the children of all these pages and stores their level, or returns nothing if a page is
/// no interior page with sound separators.
std::vector<TreePart> children_of(const SnapshotFiles& files, const std::vector<TreePart>& pages,
                                  uint32_t& level) {
  const auto buffer = std::make_unique<PageBuffer>();
  std::vector<TreePart> below;
  for (const TreePart& part : pages) {
    if (!files.read(part.page, &buffer->header())) return {};
    const auto* tree = buffer->as<InteriorPage>();
    const uint32_t count = tree->header.version().count();
    const bool is_interior = tree->header.type == PageType::mastertree_interior && count != 0 &&
                             count <= kInteriorCapacity && tree->separators[0] == part.low;
    if (!is_interior || tree->header.level == 0) return {};
    level = uint32_t{tree->header.level} - 1;
    for (uint32_t i = 0; i < count; ++i) {
      const uint64_t low = tree->separators[i];
      if (!below.empty() && low <= below.back().low) return {};
      below.push_back(
          {low, SnapshotPointer(tree->children[i].snapshot_word.load(std::memory_order_relaxed))});
    }
  }
  return below;
}

std::vector<WalkRange> split_tree(const SnapshotFiles& files, const SnapshotWalkStorage& storage,
                                  uint32_t count) {
  std::vector<TreePart> pages = {{0, storage.root}};
  uint32_t level = UINT32_MAX;  // level of `pages`; UINT32_MAX: unknown, `pages` is the root
  while (pages.size() < count * kPagesPerRange && level != 0) {
    std::vector<TreePart> below = children_of(files, pages, level);
    if (below.empty()) break;
    pages = std::move(below);
  }
  std::vector<uint64_t> lows;
  for (const TreePart& part : pages) lows.push_back(part.low);
  const uint64_t most = level == 0 ? pages.size() / kMinPagesPerRange : count;
  return ranges_of(lows, std::clamp<uint64_t>(most, 1, count));
}

}  // namespace

std::vector<WalkRange> split_storage(const SnapshotFiles& files, const SnapshotWalkStorage& storage,
                                     uint32_t count) {
  CHECK(count != 0);
  if (storage.root.is_null()) return {WalkRange{}};
  switch (storage.type) {
    case StorageType::array:
      return split_array(storage, count);
    case StorageType::mastertree:
    case StorageType::hash:
      return split_tree(files, storage, count);
    case StorageType::sequential:
      return split_sequential(files, storage, count);
    case StorageType::none:
      break;
  }
  return {WalkRange{}};
}

}  // namespace atolldb
