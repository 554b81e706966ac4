// What a worker remembers of border pages while its begin epoch stays the same.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/transaction/vid.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Border pages that this worker found lately: spares the descent for keys beside each other (the
/// lines of an order, both ends of a queue). An entry is good as long as the begin epoch is the
/// same, since no page that was found under it can be recycled; the user still checks the version,
/// and the range when it was not known.
class PageMemo {
 public:
  /// Slices [low, last] are in the page, as far as is known without having looked at it.
  struct Range {
    uint64_t low = 0;
    uint64_t last = ~uint64_t{0};
    bool is_known() const { return (low | ~last) != 0; }  // not all slices
    /// Without a branch, which nobody could predict.
    bool contains(uint64_t slice) const {
      return (static_cast<int>(low <= slice) & static_cast<int>(slice <= last)) != 0;
    }
  };
  struct Entry {
    const void* root = nullptr;
    PageHeader* page = nullptr;
    Range range;

    /// 0: the slice is not in the page; 1: it may be, the range is not known; 2: it is.
    uint32_t rank(const void* of_root, uint64_t slice) const {
      const auto may_be =
          static_cast<uint32_t>(root == of_root) & static_cast<uint32_t>(range.contains(slice));
      return may_be << static_cast<uint32_t>(range.is_known());
    }
  };

  /// The page whose range holds the slice for sure, else one whose range is not known, or null.
  /// Which of the two ways it is nobody can predict: no branch depends on that.
  const Entry* find(const void* root, uint64_t slice) const {
    static_assert(kWays == 2);
    const Set& set = sets_[index(root, slice)];
    const uint32_t first = set.ways[0].rank(root, slice);
    const uint32_t second = set.ways[1].rank(root, slice);
    const Entry* best = &set.ways[second > first];
    return (first | second) != 0 ? best : nullptr;
  }
  void remember(const void* root, uint64_t slice, PageHeader* page, Range range) {
    Set& set = sets_[index(root, slice)];
    // What held the slice before is out of date; else the older one goes.
    uint32_t way = set.older;
    for (uint32_t i = 0; i < kWays; ++i) {
      if (set.ways[i].root == root && set.ways[i].range.contains(slice)) way = i;
    }
    set.ways[way] = {root, page, range};
    set.older = 1 - way;
  }
  void clear() { sets_.fill({}); }

 private:
  static constexpr uint32_t kSets = 128;
  static_assert(std::has_single_bit(kSets));
  static constexpr uint32_t kWays = 2;
  struct Set {
    std::array<Entry, kWays> ways;
    uint32_t older = 0;
  };
  /// Keys that share their high bits share a page more likely than others.
  static uint32_t index(const void* root, uint64_t slice) {
    const uint64_t mixed =
        (reinterpret_cast<uintptr_t>(root) ^ (slice >> 40) * 0x9e3779b97f4a7c15ull) *
        0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(mixed >> (64 - std::countr_zero(kSets)));
  }
  std::array<Set, kSets> sets_{};
};

/// Runs of settled dead records that this worker's scans passed: the head of a queue has one, and
/// every scan would pass it again. A run is good for the page word that it was found under, since a
/// settled dead record comes back only after that has changed (R12); like a PageMemo's, entries are
/// forgotten with the begin epoch.
class DeadRunMemo {
 public:
  struct Run {
    const PageHeader* page = nullptr;
    uint64_t page_word = 0;
    uint32_t first = 0;  // slots [first, end)
    uint32_t end = 0;
    Vid latest;  // of all of them, what an observer depends on (R15, R19)
  };
  /// The run last found in a page that maps to the same place: check page and word.
  Run& at(const PageHeader* page) {
    return runs_[(reinterpret_cast<uintptr_t>(page) / kPageBytes) % kEntries];
  }
  void clear() { runs_.fill({}); }

 private:
  static constexpr uint32_t kEntries = 64;
  std::array<Run, kEntries> runs_{};
};

}  // namespace atolldb
