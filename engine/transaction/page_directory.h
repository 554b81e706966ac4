// A node's directory of border pages of hash storages, by the high bits of the hash. A hit leads to
// the page of a key with one load, instead of a descent through the interior pages.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "engine/format/tree_page.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/zeroed_array.h"

namespace atolldb {

/// Hints only: a missing or outdated entry costs a descent, and no result depends on the directory
/// (R86). It is memory of this process, so each node has its own. Thread: any.
///
/// Entry i of a storage is the name of a border page whose range holds slices of
/// [i << shift, (i + 1) << shift). A page has several entries if its range is wider than that.
class PageDirectory {
 public:
  static constexpr uint32_t kMinDepth = 9;  // of the hash's bits: one page of memory
  static constexpr uint32_t kMaxDepth = 26;
  /// A page is narrow if its range has fewer entries than this. Then many of its look-ups would
  /// meet an entry that leads to a neighbour. A larger number makes the table miss the caches.
  static constexpr uint64_t kEntriesOfPage = 2;
  /// The table grows if more than 1 / kNarrowPart of the pages are narrow: each counts
  /// kNarrowPart - 1, and each other page counts -1. The sum that lets the table grow is the number
  /// of entries, divided by kNarrowPart.
  static constexpr uint64_t kNarrowPart = 4;

  PageDirectory() : tables_(std::make_unique<std::array<Table, kMaxStorages>>()) {}

  /// Returns the border page that holds the slice, and its version, or null. REQUIRES: the caller
  /// has published a begin epoch, and the storage is ready (R34).
  BorderPage* find(const ClusterView& view, uint32_t storage_id, uint64_t slice,
                   PageVersion& version) const {
    const Table& table = table_of(storage_id);
    // Acquire pairs with the release in `open`: the table of this storage is visible.
    if (table.storage_id.load(std::memory_order_acquire) != storage_id) return nullptr;
    const uint32_t shift = table.shift.load(std::memory_order_relaxed);
    DCHECK(shift >= 64 - kMaxDepth && shift <= 64 - kMinDepth);
    // Acquire pairs with the release in `remember`, so that the page is seen as it was published.
    const VolatilePointer name((*table.words)[slice >> shift].load(std::memory_order_acquire));
    if (name.is_null()) return nullptr;
    // The guide and the slices are needed next, and do not wait for the header this way.
    const auto* start = reinterpret_cast<const std::byte*>(page_at(view, name));
#pragma GCC unroll 8
    for (uint32_t line = 1; line <= kPrefetchedLines; ++line) __builtin_prefetch(start + line * 64);
    TreePage* page = live_page(view, name, storage_id, version);
    if (page == nullptr) return nullptr;
    if (page->contains(slice)) [[likely]]
      return border_page(page);
    return find_beside(view, storage_id, slice, *page, version);
  }

  /// Prefetches the entry of the slice. A hint.
  void prefetch_entry(uint32_t storage_id, uint64_t slice) const {
    const Table& table = table_of(storage_id);
    if (table.storage_id.load(std::memory_order_acquire) != storage_id) return;
    __builtin_prefetch(&(*table.words)[slice >> table.shift.load(std::memory_order_relaxed)]);
  }
  /// Returns the page that the entry names, or null. It may hold anything: for prefetches only.
  TreePage* guess(const ClusterView& view, uint32_t storage_id, uint64_t slice) const {
    const Table& table = table_of(storage_id);
    if (table.storage_id.load(std::memory_order_acquire) != storage_id) return nullptr;
    const uint32_t shift = table.shift.load(std::memory_order_relaxed);
    const VolatilePointer name((*table.words)[slice >> shift].load(std::memory_order_relaxed));
    return name.is_null() ? nullptr : page_at(view, name);
  }

  /// Stores that this page of the first layer holds the slice. REQUIRES: a descent has found the
  /// page under the begin epoch of this thread.
  void remember(const ClusterView& view, uint32_t storage_id, uint64_t slice, TreePage* page);
  /// Does the same for all slices of the page. REQUIRES: this thread has published the page under
  /// its begin epoch.
  void remember_all(const ClusterView& view, uint32_t storage_id, TreePage* page);

  /// Returns the number of hash bits that index the table of this storage; 0: it has no table.
  uint32_t depth_of(uint32_t storage_id) const {
    const Table& table = table_of(storage_id);
    if (table.storage_id.load(std::memory_order_acquire) != storage_id) return 0;
    return 64 - table.shift.load(std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t kPrefetchedLines = 6;  // 48 slices

  /// Continues a search whose entry leads to the neighbour `page`. The next entry on the side of
  /// the slice probably leads to its page.
  BorderPage* find_beside(const ClusterView& view, uint32_t storage_id, uint64_t slice,
                          const TreePage& page, PageVersion& version) const;

  static TreePage* page_at(const ClusterView& view, VolatilePointer name) {
    DCHECK(!name.is_null() && !name.is_frozen() && name.node() < view.node_count);
    return reinterpret_cast<TreePage*>(view.pool[name.node()] +
                                       uint64_t{name.index()} * kPageBytes);
  }

  struct Table {
    std::atomic<uint32_t> storage_id{0};  // stored last, with release; 0: no storage
    std::atomic<uint32_t> shift{0};
    std::atomic<uint64_t> narrow{0};  // sum over remembered pages, see kNarrowPart
    std::unique_ptr<ZeroedArray<std::atomic<uint64_t>>> words;
  };

  /// Returns the page if it has had this name when its version was loaded, and was not moved then.
  /// The page can only be retired later, and the caller's begin epoch keeps it from being reused
  /// (R9, R86). Otherwise returns null.
  static TreePage* live_page(const ClusterView& view, VolatilePointer name, uint32_t storage_id,
                             PageVersion& version) {
    if (name.is_null()) return nullptr;
    TreePage* page = page_at(view, name);
    // Acquire pairs with the release in PageAllocator::take: a page that was taken for another use
    // has another name from before its version is set. So the name is loaded after the version.
    version = page->header.version();
    if (version.is_moved() && !fault::use_moved_hints) return nullptr;
    const uint64_t self = std::atomic_ref(page->header.self).load(std::memory_order_acquire);
    if (self != name.word() && !fault::use_renamed_hints) return nullptr;
    // Only now: the thread that takes a page for another use writes these members meanwhile.
    const PageHeader& header = page->header;
    const bool is_border = header.type == PageType::mastertree_border &&
                           header.storage_id == storage_id && header.is_snapshot == 0;
    return is_border ? page : nullptr;
  }

  const Table& table_of(uint32_t storage_id) const {
    DCHECK(storage_id != 0);
    return (*tables_)[storage_id % kMaxStorages];
  }
  Table& open(uint32_t storage_id);
  static void grow(Table& table, uint32_t shift);
  static void count_width(Table& table, uint32_t shift, const TreePage& page);
  /// Stores the page in the entry of the slice, unless another page has more of the entry's slices.
  /// Returns whether it has stored it.
  bool store_entry(const ClusterView& view, Table& table, uint32_t shift, uint64_t slice,
                   TreePage* page);

  std::unique_ptr<std::array<Table, kMaxStorages>> tables_;
  std::mutex opening_;
};

}  // namespace atolldb
