// Page pointers that are valid in every process.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {

inline constexpr uint64_t kPageBytes = 4096;

/// 64-bit name of a volatile page.
///
///   63      56 55              32 31 30                    0
///   [ node 8 ][  generation 24  ][F][     page index 31     ]
///
/// Page index 0 is null. The highest bit of a null word is the delta mark (R76), and the other bits
/// of node and generation are a drop count (R1). Two null words therefore differ if a page was
/// installed and dropped in between. F is the frozen bit (R3): the page that holds the word is
/// being replaced or evicted. The generation changes whenever a page is recycled. Debug builds
/// check the generation on every resolve.
class VolatilePointer {
 public:
  static constexpr uint64_t kIndexMask = 0x7fffffffull;
  static constexpr uint64_t kFrozenBit = 0x80000000ull;
  static constexpr uint64_t kGenerationMask = 0xffffffull;
  static constexpr uint64_t kDeltaBit = uint64_t{1} << 63;

  constexpr VolatilePointer() = default;
  constexpr explicit VolatilePointer(uint64_t word) : word_(word) {}
  static constexpr VolatilePointer make(uint32_t node, uint64_t generation, uint64_t index) {
    DCHECK(node <= kMaxNodes && index <= kIndexMask);
    return VolatilePointer((uint64_t{node} << 56) | ((generation & kGenerationMask) << 32) |
                           (index & kIndexMask));
  }

  constexpr uint64_t word() const { return word_; }
  constexpr bool is_null() const { return (word_ & kIndexMask) == 0; }
  constexpr bool is_frozen() const { return (word_ & kFrozenBit) != 0; }
  constexpr uint32_t node() const { return static_cast<uint32_t>(word_ >> 56); }
  constexpr uint32_t generation() const {
    return static_cast<uint32_t>((word_ >> 32) & kGenerationMask);
  }
  constexpr uint32_t index() const { return static_cast<uint32_t>(word_ & kIndexMask); }
  constexpr VolatilePointer frozen() const { return VolatilePointer(word_ | kFrozenBit); }
  constexpr VolatilePointer thawed() const { return VolatilePointer(word_ & ~kFrozenBit); }
  /// Returns the null word of the drop with this number, modulo 2^31 (R1).
  static constexpr VolatilePointer null_of(uint32_t drop) {
    return VolatilePointer((uint64_t{drop} << 32) & ~kDeltaBit);
  }
  /// Returns whether the storage's delta tree may have records of this pointer's range (R76).
  constexpr bool has_delta() const { return is_null() && (word_ & kDeltaBit) != 0; }
  constexpr VolatilePointer with_delta() const {
    DCHECK(is_null());
    return VolatilePointer(word_ | kDeltaBit);
  }

  constexpr bool operator==(const VolatilePointer&) const = default;

 private:
  uint64_t word_ = 0;
};
static_assert(sizeof(VolatilePointer) == 8);

/// 64-bit name of an immutable snapshot page (R37). A snapshot id is never reused.
///
///   63          40 39    32 31        0
///   [ snapshot 24 ][ node 8 ][ page 32 ]
///
/// Page 0 is null, because it is the header of the node's file in that snapshot. Node 255 is the
/// coordinator, which writes the upper pages of partitioned storages.
class SnapshotPointer {
 public:
  static constexpr uint32_t kMaxSnapshot = (uint32_t{1} << 24) - 1;

  constexpr SnapshotPointer() = default;
  constexpr explicit SnapshotPointer(uint64_t word) : word_(word) {}
  static constexpr SnapshotPointer make(uint32_t snapshot, uint32_t node, uint32_t page) {
    DCHECK(snapshot <= kMaxSnapshot);
    DCHECK(node <= kCoordinator);
    return SnapshotPointer((uint64_t{snapshot} << 40) | (uint64_t{node} << 32) | page);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr bool is_null() const { return (word_ & 0xffffffffull) == 0; }
  constexpr uint32_t snapshot() const { return static_cast<uint32_t>(word_ >> 40); }
  constexpr uint32_t node() const { return static_cast<uint32_t>((word_ >> 32) & 0xff); }
  constexpr uint32_t page() const { return static_cast<uint32_t>(word_ & 0xffffffffull); }
  constexpr bool operator==(const SnapshotPointer&) const = default;

 private:
  uint64_t word_ = 0;
};

/// Pair of a volatile word and a snapshot word. Their pages are logically equivalent and physically
/// independent. A dual pointer never changes its address during the life of the page that holds it
/// (R3). A null volatile word is replaced by compare-and-swap from exactly the word that was read
/// (R1). The word changes from one page to another only under the lock of its holder, a page or a
/// storage root.
struct DualPointer {
  std::atomic<uint64_t> volatile_word{0};
  std::atomic<uint64_t> snapshot_word{0};

  VolatilePointer load_acquire() const {
    // Acquire pairs with the release of the thread that stored the pointer: the page's content is
    // visible.
    return VolatilePointer(volatile_word.load(std::memory_order_acquire));
  }

  /// Values of both words, as engine/transaction/dual_pointer.h reads them.
  struct View {
    VolatilePointer page;
    SnapshotPointer snapshot;  // valid only if `page` is null: the page to read instead
  };
};
static_assert(sizeof(DualPointer) == 16);

/// Position of a lockable word in the universal order (node, page index, offset). It is the same in
/// every process. Locks are never ordered by address.
///
///   63    51 50      43 42            12 11        0
///   [ zero ][ node 8   ][ page index 31 ][ offset 12]
class UniversalName {
 public:
  constexpr UniversalName() = default;
  constexpr explicit UniversalName(uint64_t word) : word_(word) {}
  static constexpr UniversalName make(VolatilePointer page, uint64_t offset) {
    DCHECK(offset < kPageBytes);
    return UniversalName((uint64_t{page.node()} << 43) | (uint64_t{page.index()} << 12) | offset);
  }
  constexpr uint64_t word() const { return word_; }
  constexpr uint32_t node() const {
    DCHECK(word_ >> 51 == 0);
    return static_cast<uint32_t>(word_ >> 43);
  }
  /// Byte offset in the node's pool segment.
  constexpr uint64_t pool_offset() const { return word_ & ((uint64_t{1} << 43) - 1); }
  constexpr auto operator<=>(const UniversalName&) const = default;

 private:
  uint64_t word_ = 0;
};

}  // namespace atolldb
