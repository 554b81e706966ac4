// Random fence maps (`FenceMap`) that no real tree has, as input for composers.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "engine/compose/compose.h"
#include "engine/format/tree_key.h"
#include "tests/engine/compose/compose_rules.h"

namespace atolldb::test {

/// Makes random fence maps. Their pages begin at slices of existing keys, or one higher. A page of
/// a higher level may begin where no page of the level below begins.
class RandomFenceMaps : public FenceMapSource {
 public:
  static constexpr bool kCaptures = false;

  explicit RandomFenceMaps(RandomHistory& history) : history_(history) {}

  Status fence_map_of(uint32_t, std::span<const std::byte> prefix, const SliceRange& range,
                      FenceMap& fence_map) override {
    fence_map.clear();
    if (history_.below(4) == 0) return Status::ok;
    fence_map.set_root();
    // With 0 levels the map knows only the root, as for a tree without interior pages.
    const uint64_t levels = history_.below(4);
    std::vector<std::pair<uint64_t, uint32_t>> slots;
    for (uint32_t level = 0; level < levels; ++level) {
      slots.emplace_back(range.low, level);
      const uint64_t count = history_.below((level == 0 ? 60 : 10) + 1);
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t slice = slice_below(prefix);
        if (range.contains(slice)) slots.emplace_back(slice, level);
      }
      // Adds pages of this level that begin where a page of the level below begins, as in a real
      // tree.
      const size_t all = slots.size();
      for (size_t at = 0; at < all && level != 0; ++at) {
        if (slots[at].second + 1 == level && history_.below(5) == 0) {
          slots.emplace_back(slots[at].first, level);
        }
      }
    }
    // Sorts the pages from left to right, which is the order in which a collector finds them.
    std::ranges::sort(slots);
    for (const auto& [low, level] : slots) {
      fence_map.add(level,
                    {low, history_.below(3) == 0 ? FenceMap::Kind::cold : FenceMap::Kind::warm,
                     history_.below(2) == 0, true});
    }
    fence_map.settle();
    return Status::ok;
  }

 private:
  uint64_t slice_below(std::span<const std::byte> prefix) {
    const std::string key = history_.existing_key();
    const Bytes rest = std::as_bytes(std::span(key));
    if (rest.size() <= prefix.size()) return history_.below(4);
    return slice_of(rest.subspan(prefix.size())) + history_.below(2);
  }

  RandomHistory& history_;
};

/// Compares snapshots with a plain map, and their counts of pages with a walk (R67). `Source` makes
/// random fence maps or captured pages for a history. A wrong fence map must give a sound snapshot.
/// Its only cost is pages that cannot be dropped.
template <typename Source>
void trees_against_a_map(uint64_t histories, uint64_t operations) {
  std::mt19937_64 seeds(seed());
  uint64_t captured_pages = 0;
  uint64_t snapshots = 0;
  for (uint64_t i = 0; i < histories; ++i) {
    RandomHistory history(seeds());
    Source source(history);
    history.key_space = 1 + history.below(operations * 2);
    SnapshotStage stage(StorageType::mastertree);
    for (uint64_t round = 0; round < 8; ++round) {
      const auto logs = history.round(history.below(3) == 0 ? history.below(5) : operations,
                                      static_cast<uint32_t>(history.below(4) * 30));
      stage.choose_victims(history.below(UINT64_MAX));
      const std::vector<uint32_t> victims = stage.victims;
      const auto combined = stage.round(logs, history.partitions(5), history.epoch, &source);
      ASSERT_TRUE(combined) << combined.error().message;
      ASSERT_NO_FATAL_FAILURE(check_stage(stage, history.model))
          << "history " << i << " round " << round;
      ASSERT_NO_FATAL_FAILURE(check_files(stage, victims));
      ++snapshots;
    }
    captured_pages += stage.captured_pages;
    EXPECT_EQ(stage.misfits, 0) << "all pages of the base can be read";
  }
  if (Source::kCaptures) {
    EXPECT_GT(captured_pages, snapshots);
  }
}

}  // namespace atolldb::test
