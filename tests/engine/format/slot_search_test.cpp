// Searches among slices and separators, compared with naive searches.
#include "engine/format/slot_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "engine/format/tree_page.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

constexpr uint64_t kTop = uint64_t{1} << 63;

class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed | 1) {}
  uint64_t next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }
  /// Returns one of 400 values on both sides of the sign bit, so that many are equal or adjacent.
  uint64_t close() { return kTop - 200 + next() % 400; }
  std::vector<uint64_t> ascending(size_t count) {
    std::vector<uint64_t> values(count);
    for (uint64_t& value : values) value = close();
    std::ranges::sort(values);
    return values;
  }

 private:
  uint64_t state_;
};

uint32_t naive_count(const std::vector<uint64_t>& values, uint64_t bound) {
  return static_cast<uint32_t>(std::ranges::upper_bound(values, bound) - values.begin());
}

/// A border page whose bytes an earlier use has left. Searches must ignore what is not counted.
class BorderSlots {
 public:
  BorderSlots(Numbers& numbers, const std::vector<uint64_t>& slices) {
    for (std::byte& byte : bytes_) byte = static_cast<std::byte>(numbers.next());
    page().set_slot_capacity(kBorderSlotBound);
    for (uint32_t slot = 0; slot < slices.size(); ++slot) page().set_slice(slot, slices[slot]);
  }
  BorderPage& page() { return *reinterpret_cast<BorderPage*>(bytes_); }

 private:
  alignas(64) std::byte bytes_[kPageBytes];
};

TEST(BorderPageSearch, AgreesWithAnUpperBoundWhateverTheCount) {
  Numbers numbers(test::seed());
  for (uint32_t slots = 0; slots <= kBorderSlotBound; ++slots) {
    const std::vector<uint64_t> slices = numbers.ascending(slots);
    BorderSlots border(numbers, slices);
    ASSERT_TRUE(border.page().has_guide(slots));
    // A reader may count fewer slots than the page has by now.
    for (int i = 0; i < 100; ++i) {
      const auto count = static_cast<uint32_t>(numbers.next() % (slots + 1));
      const std::vector<uint64_t> counted(slices.begin(), slices.begin() + count);
      const uint64_t bound = numbers.close();
      ASSERT_EQ(border.page().count_at_or_below(bound, count), naive_count(counted, bound))
          << count << " of " << slots << " slots, bound " << bound;
      ASSERT_EQ(border.page().find_lower_bound(bound + 1, count), naive_count(counted, bound));
    }
    EXPECT_EQ(border.page().count_at_or_below(~uint64_t{0}, slots), slots);
    EXPECT_EQ(border.page().find_lower_bound(0, slots), 0u);
  }
}

TEST(BorderPageSearch, AGuideThatDiffersFromTheSlicesIsFound) {
  Numbers numbers(test::seed());
  const std::vector<uint64_t> slices = numbers.ascending(kBorderSlotBound);
  for (uint32_t i = 0; i < kBorderGuides; ++i) {
    BorderSlots border(numbers, slices);
    ++border.page().border_guide[i];
    const uint32_t slot = (i + 1) * kSearchStride;
    EXPECT_EQ(border.page().has_guide(kBorderSlotBound), slot >= kBorderSlotBound);
    EXPECT_TRUE(border.page().has_guide(slot)) << "the slot of the guide is not counted";
  }
}

TEST(CountInStride, LeavesOutWhatIsBeyondTheCount) {
  const std::vector<uint64_t> zeroes(kSearchStride, 0);
  for (uint32_t count = 0; count <= kSearchStride; ++count) {
    EXPECT_EQ(count_in_stride(zeroes.data(), count, 0), count);
  }
}

/// Returns the child with the greatest separator at or below the slice, in the sorted part or the
/// tail.
uint32_t naive_find(const InteriorPage& page, uint64_t slice, uint32_t count) {
  uint32_t best = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (page.separators[i] <= slice && page.separators[i] >= page.separators[best]) best = i;
  }
  return best;
}

TEST(InteriorPageFind, AgreesWithACheckOfEverySeparatorWhateverTheTail) {
  Numbers numbers(test::seed());
  alignas(64) static std::byte bytes[kPageBytes];
  for (uint32_t count = 1; count <= kInteriorCapacity; ++count) {
    // Fills the page with bytes that an earlier use may have left. The search must ignore them.
    std::memset(bytes, static_cast<int>(numbers.next() % 256), sizeof(bytes));
    auto* page = reinterpret_cast<InteriorPage*>(bytes);
    std::vector<uint64_t> all;
    for (uint64_t value = kTop - 1000; all.size() < count; value += 1 + numbers.next() % 20) {
      all.push_back(value);
    }
    const uint32_t tail = static_cast<uint32_t>(numbers.next() % (kInteriorTail + 1));
    const uint32_t sorted = count > tail ? count - tail : count;
    // Any key except the first may be in the unsorted tail.
    for (uint32_t i = sorted; i < count; ++i) {
      std::swap(all[i], all[1 + numbers.next() % (count - 1)]);
    }
    std::sort(all.begin(), all.begin() + sorted);
    std::ranges::copy(all, page->separators);
    page->set_sorted(sorted);
    for (int i = 0; i < 200; ++i) {
      const uint64_t slice = all[0] + numbers.next() % 2500;
      ASSERT_EQ(page->find(slice, count), naive_find(*page, slice, count))
          << count << " separators, " << sorted << " sorted, slice " << slice;
    }
    EXPECT_EQ(page->find(~uint64_t{0}, count), naive_find(*page, ~uint64_t{0}, count));
  }
}

}  // namespace
}  // namespace atolldb
