// Per-worker memos of border pages, valid while the worker's begin epoch is unchanged.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "engine/format/increment.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/memory/page_header.h"

namespace atolldb {

/// Border pages that this worker has found recently. A hit saves the descent for neighbouring keys
/// (the lines of an order, both ends of a queue). An entry is valid as long as the begin epoch is
/// unchanged, because no page found under that epoch can be recycled. The caller still checks the
/// page version. It also checks the page's range if the entry has no known range.
class PageMemo {
 public:
  /// Slices [low, last], which the page is known to hold. All slices: its range is unknown.
  struct Range {
    uint64_t low = 0;
    uint64_t last = ~uint64_t{0};
    bool is_known() const { return (low | ~last) != 0; }  // false: all slices
    /// Tests without a branch, because the outcome is unpredictable.
    bool contains(uint64_t slice) const {
      return (static_cast<int>(low <= slice) & static_cast<int>(slice <= last)) != 0;
    }
  };
  struct Entry {
    const void* root = nullptr;
    PageHeader* page = nullptr;
    Range range;

    /// Returns 2 if the slice is in the page's known range, and 1 if the range is unknown. Returns
    /// 0 if the slice is not in the page.
    uint32_t rank(const void* of_root, uint64_t slice) const {
      const auto may_be =
          static_cast<uint32_t>(root == of_root) & static_cast<uint32_t>(range.contains(slice));
      return may_be << static_cast<uint32_t>(range.is_known());
    }
  };

  /// Returns the entry whose known range holds the slice. If there is none, returns an entry with
  /// an unknown range, or null. Chooses between the two ways of the set without a branch, because
  /// the choice is unpredictable.
  const Entry* find(const void* root, uint64_t slice) const {
    static_assert(kWays == 2);
    const Set& set = sets_[index(root, slice)];
    const uint32_t first = set.ways[0].rank(root, slice);
    const uint32_t second = set.ways[1].rank(root, slice);
    const Entry* best = &set.ways[second > first];
    return (first | second) != 0 ? best : nullptr;
  }
  void remember(const void* root, uint64_t slice, PageHeader* page, Range range) {
    DCHECK(root != nullptr && page != nullptr);
    DCHECK(range.low <= range.last && range.contains(slice));
    Set& set = sets_[index(root, slice)];
    DCHECK(set.older < kWays);
    // Replaces the entry that held the slice before, because it is outdated. If there is none,
    // replaces the older entry.
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
  /// Keys that share their high bits often share a page, so they get the same set.
  static uint32_t index(const void* root, uint64_t slice) {
    const uint64_t mixed =
        (reinterpret_cast<uintptr_t>(root) ^ (slice >> 40) * 0x9e3779b97f4a7c15ull) *
        0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(mixed >> (64 - std::countr_zero(kSets)));
  }
  std::array<Set, kSets> sets_{};
};

/// Runs of stable tombstones (`is_stable_tombstone`) that this worker's scans have skipped. The
/// head of a queue has such a run, and without this memo every scan would examine it again. A run
/// is valid for the page word under which it was found. A tombstone of the run can come alive only
/// after that word has changed (R12). The memo is cleared when the begin epoch changes, because the
/// pages may be recycled then.
class TombstoneRunMemo {
 public:
  struct Run {
    const PageHeader* page = nullptr;
    uint64_t page_word = 0;
    uint32_t first = 0;  // the run has slots [first, end)
    uint32_t end = 0;
    Vid latest;  // the largest VID of the run, which an observer depends on (R15, R19)
  };
  /// Returns the run in the place of the table where this page's run would be. The caller must
  /// check that the run's page and page word match.
  Run& at(const PageHeader* page) {
    return runs_[(reinterpret_cast<uintptr_t>(page) / kPageBytes) % kEntries];
  }
  void clear() { runs_.fill({}); }

 private:
  static constexpr uint32_t kEntries = 64;
  std::array<Run, kEntries> runs_{};
};

/// Remembers when this worker first saw snapshots. A snapshot was taken before it was seen, so all
/// changes in it are older than that. Snapshot numbers ascend with the epochs of the snapshots.
/// Thread: the worker.
class AddWindow {
 public:
  /// Returns whether all changes in the snapshot are at least kAddDistanceEpochs older than
  /// `epoch`, the current one, as far as this worker knows.
  bool is_open(uint32_t snapshot, uint64_t epoch) {
    if (snapshot > newest_.snapshot) {
      before_ = newest_;
      newest_ = {snapshot, epoch};
    }
    const Seen& seen = snapshot <= before_.snapshot ? before_ : newest_;
    DCHECK(snapshot <= seen.snapshot && seen.epoch <= epoch);
    return epoch >= seen.epoch + kAddDistanceEpochs;
  }

 private:
  struct Seen {
    uint32_t snapshot = 0;
    uint64_t epoch = 0;
  };
  Seen newest_;
  Seen before_;
};

}  // namespace atolldb
