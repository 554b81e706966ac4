// Header of every 4 KiB page, volatile or snapshot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {

enum class PageType : uint8_t {
  free = 0,
  array_leaf,
  array_interior,
  mastertree_border,
  mastertree_interior,
  sequential,
};
/// Change it with PageType. Types that occur only in snapshots have the numbers after it.
inline constexpr PageType kLastPageType = PageType::sequential;

/// The page-version word (R6). Every physical insert, split, move and drop changes this atomic
/// word, so that a reader that registered it notices.
///
///   63                   24 23         8 7      0
///   [   change counter 40  ][ key count ][ status ]
class PageVersion {
 public:
  static constexpr uint64_t kMoved = 1;      // replaced: continue through the twins
  static constexpr uint64_t kDropped = 2;    // dropped: descend again by key
  static constexpr uint64_t kAscending = 4;  // slots are in key order: no sort needed
  static constexpr uint64_t kCountShift = 8;
  static constexpr uint64_t kCounterShift = 24;

  constexpr PageVersion() = default;
  constexpr explicit PageVersion(uint64_t word) : word_(word) {}
  static constexpr PageVersion make(uint64_t counter, uint64_t count, uint64_t status) {
    DCHECK(count <= 0xffff && status <= 0xff);
    return PageVersion((counter << kCounterShift) | (count << kCountShift) | status);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool is_moved() const { return (word_ & kMoved) != 0; }
  constexpr bool is_dropped() const { return (word_ & kDropped) != 0; }
  constexpr bool is_ascending() const { return (word_ & kAscending) != 0; }
  constexpr uint64_t status() const { return word_ & 0xff; }
  constexpr uint32_t count() const {
    return static_cast<uint32_t>((word_ >> kCountShift) & 0xffff);
  }
  constexpr uint64_t counter() const { return word_ >> kCounterShift; }
  constexpr PageVersion with_insert(bool still_ascending) const {
    return with_inserts(1, still_ascending);
  }
  constexpr PageVersion with_inserts(uint32_t inserts, bool still_ascending) const {
    const uint64_t status_now = still_ascending ? status() : status() & ~kAscending;
    return make(counter() + 1, uint64_t{count()} + inserts, status_now);
  }
  constexpr PageVersion with_change() const { return make(counter() + 1, count(), status()); }
  constexpr PageVersion with_status(uint64_t bits) const {
    return make(counter() + 1, count(), status() | bits);
  }
  constexpr bool operator==(const PageVersion&) const = default;

 private:
  uint64_t word_ = 0;
};

/// Common page header. `self` survives the recycling of the page, because it carries the
/// generation.
///
/// The header leaves 16 bytes of the page's first cache line, where Master-tree pages have their
/// range. So a look-up needs no other line of the header. While other threads read the line, it is
/// written only
/// - by changes of `version_word`, of which readers must learn anyway,
/// - rarely: `reference_bit` and `max_removed_vid`,
/// - when the page and the next one of its list are retired: `check` and `next_retired`.
/// The lock word is not here, because threads that wait for the lock write it.
struct PageHeader {
  uint64_t self;                          // VolatilePointer or SnapshotPointer word
  std::atomic<uint64_t> version_word;     // PageVersion; stored under the page lock
  std::atomic<uint64_t> max_removed_vid;  // VID word: newest removed version of the range (R43)
  uint64_t check;                         // snapshot pages: CRC32C; retired pages: retire epoch
  uint32_t storage_id;
  uint32_t next_retired;      // retired pages: index of the next page in the list; 0: no next page
  uint8_t next_retired_node;  // retired pages: node of the next page in the list
  PageType type;
  uint8_t layer;  // layer of a Master-tree; 0 in an array
  uint8_t level;  // 0: leaf or border page
  uint8_t is_snapshot;
  std::atomic<uint8_t> reference_bit;  // set by workers on sampled uses, cleared by installers
  uint8_t is_delta;                    // Master-tree pages: page of a delta tree (R76)
  uint8_t slots;                       // Master-tree pages: see BorderPage and InteriorPage

  PageVersion version() const {
    // Acquire pairs with the release store of the thread that changed the page: the slots below the
    // count are visible.
    return PageVersion(version_word.load(std::memory_order_acquire));
  }
  void set_version(PageVersion version) {
    version_word.store(version.word(), std::memory_order_release);
  }
  VolatilePointer volatile_self() const { return VolatilePointer(self); }
};
static_assert(sizeof(PageHeader) == 48);
// Code that gives a page another use stores name and version in order, and then the rest (R86).
static_assert(offsetof(PageHeader, self) == 0 && offsetof(PageHeader, version_word) == 8 &&
              offsetof(PageHeader, max_removed_vid) == 16);

/// Returns the page that contains this address. REQUIRES: the pool is mapped page-aligned.
inline PageHeader* page_of(const void* address) {
  return reinterpret_cast<PageHeader*>(reinterpret_cast<uintptr_t>(address) & ~(kPageBytes - 1));
}

}  // namespace atolldb
