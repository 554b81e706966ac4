// Random captured pages as input for composers (R75). No real tree has such pages.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/compose/capture.h"
#include "engine/compose/tree_builder.h"
#include "engine/format/tree_key.h"
#include "tests/engine/compose/random_fence_maps.h"

namespace atolldb::test {

/// Makes an image of the model's records in a range. Returns false if they do not fit in one border
/// page, or if some of them need a layer.
inline bool make_image(const Model& model, const SliceRange& range, PageBuffer& image) {
  std::vector<std::pair<std::pair<uint64_t, uint32_t>, const Model::value_type*>> records;
  uint32_t bytes = 0;
  for (const auto& entry : model) {
    const auto key = std::as_bytes(std::span(entry.first));
    if (!range.contains(slice_of(key))) continue;
    const auto remainder = static_cast<uint32_t>(key.size());
    const auto payload_bytes = static_cast<uint32_t>(entry.second.payload.size());
    bytes += kSlotBytes +
             TreeRecord::bytes_for(remainder, TreeRecord::capacity_for(remainder, payload_bytes));
    records.push_back({{slice_of(key), length_class(remainder)}, &entry});
    if (bytes > kBorderUsableBytes || records.size() > kMaxBorderSlots) return false;
  }
  std::ranges::sort(records);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  // Two long keys of one slice need a layer.
  if (std::ranges::adjacent_find(records, same) != records.end()) return false;
  const auto count = static_cast<uint32_t>(records.size());
  format_border(image, 0, count, bytes, range);
  auto* page = image.as<BorderPage>();
  for (uint32_t slot = 0; slot < records.size(); ++slot) {
    const auto& [key, record] = *records[slot].second;
    const auto remainder = static_cast<uint16_t>(key.size());
    const auto payload_bytes = static_cast<uint16_t>(record.payload.size());
    const std::string suffix = remainder > 8 ? key.substr(8) : "";
    TreeRecord* copy = write_slot(page, slot, records[slot].first.first, remainder,
                                  std::as_bytes(std::span(suffix)).data(),
                                  TreeRecord::capacity_for(remainder, payload_bytes), record.vid);
    copy->payload_bytes.store(payload_bytes, std::memory_order_relaxed);
    if (payload_bytes != 0) std::memcpy(copy->payload(), record.payload.data(), payload_bytes);
  }
  return true;
}

/// Captures one range of a model as one page. Gives composers empty fence maps, as if there were no
/// volatile pages.
class OneCapture : public FenceMapSource {
 public:
  OneCapture(const Model& model, const SliceRange& range) : model_(model), range_(range) {}

  Status fence_map_of(uint32_t, std::span<const std::byte>, const SliceRange&,
                      FenceMap& fence_map) override {
    fence_map.clear();
    return Status::ok;
  }
  Result<void> capture_pages_of(uint32_t, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override {
    PageBuffer image;
    EXPECT_TRUE(make_image(model_, range_, image));
    ATOLL_ASSIGN(const SnapshotPointer page, task.write(image));
    captured.push_back({range_, page, image.header().version().count()});
    return {};
  }

 private:
  const Model& model_;
  const SliceRange range_;
};

/// Captures random ranges of the history's model. They begin and end at any slices, also inside
/// pages of the base and of the fence maps. Some ranges are adjacent, and some have no records.
class RandomCaptures : public RandomFenceMaps {
 public:
  static constexpr bool kCaptures = true;

  explicit RandomCaptures(RandomHistory& history) : RandomFenceMaps(history), history_(history) {}

  Result<void> capture_pages_of(uint32_t, const CaptureTask& task,
                                std::vector<CapturedPage>& captured) override {
    const Model& model = history_.model;
    uint64_t low = task.range.low;
    for (auto at = model.begin(); at != model.end();) {
      // Some ranges begin where the previous range ends.
      at = passed(at, history_.below(3) == 0 ? 0 : history_.below(2 * kMaxBorderSlots));
      low = std::max(low, slice_after(at));
      at = passed(at, history_.below(kMaxBorderSlots));
      SliceRange range{low, slice_after(at), false};
      if (at == model.end() && history_.below(2) == 0) range.high_is_end = true;
      const bool is_range = range.high_is_end
                                ? task.range.high_is_end
                                : range.low < range.high && task.range.contains(range.high - 1);
      PageBuffer image;
      if (!is_range || !make_image(model, range, image)) continue;
      ATOLL_ASSIGN(const SnapshotPointer page, task.write(image));
      captured.push_back({range, page, image.header().version().count()});
      if (range.high_is_end) break;
      low = range.high;
    }
    return {};
  }

 private:
  Model::const_iterator passed(Model::const_iterator at, uint64_t count) const {
    for (; count > 0 && at != history_.model.end(); --count) ++at;
    return at;
  }
  /// Returns the slice of the record `at`, or the next slice. Returns the largest slice if there is
  /// no such record.
  uint64_t slice_after(Model::const_iterator at) {
    if (at == history_.model.end()) return ~uint64_t{0};
    return slice_of(std::as_bytes(std::span(at->first))) + history_.below(2);
  }

  RandomHistory& history_;
};

}  // namespace atolldb::test
