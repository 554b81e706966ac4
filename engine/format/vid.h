// Version id of a record. Source: [FOEDUS15] appendix D.1.
#pragma once

#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/control_layout.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

///   63          28 27        6 5          0
///   [ epoch 36    ][ordinal 22][ flags 6  ]
///
/// Ordinal 0 is never a commit: a reserved record has (epoch, 0, deleted) (R10).
class Vid {
 public:
  static constexpr uint64_t kBeingWritten = 1;  // the payload is changing: readers wait
  static constexpr uint64_t kDeleted = 2;       // tombstone: the record is logically absent
  static constexpr uint64_t kMoved = 4;         // copied to a twin page, or evicted; never reverts
  static constexpr uint64_t kNextLayer = 8;     // the payload is a dual pointer; never reverts
  /// Tombstone that an insert may revive without a change of the page word (R12).
  static constexpr uint64_t kPendingTombstone = 16;
  /// The record was reserved for a write that does not read the snapshot. Until the first commit
  /// the snapshot decides whether the key exists (R82).
  static constexpr uint64_t kOpen = 32;
  static constexpr uint64_t kFlagsMask = 63;
  static constexpr uint64_t kOrdinalShift = 6;
  static constexpr uint64_t kEpochShift = 28;
  static constexpr uint64_t kMaxOrdinal = (uint64_t{1} << 22) - 1;

  constexpr Vid() = default;
  constexpr explicit Vid(uint64_t word) : word_(word) {}
  static constexpr Vid make(uint64_t epoch, uint64_t ordinal, uint64_t flags = 0) {
    DCHECK(epoch <= kMaxEpoch && flags <= kFlagsMask);
    return Vid((epoch << kEpochShift) | (ordinal << kOrdinalShift) | flags);
  }
  static constexpr Vid reserved(uint64_t epoch) { return make(epoch, 0, kDeleted); }
  /// Returns the VID of an open record. It counts as deleted, because its payload is not valid.
  static constexpr Vid open(uint64_t epoch) { return make(epoch, 0, kDeleted | kOpen); }

  constexpr uint64_t word() const { return word_; }
  constexpr uint64_t epoch() const { return word_ >> kEpochShift; }
  constexpr uint64_t ordinal() const { return (word_ >> kOrdinalShift) & kMaxOrdinal; }
  constexpr bool is_being_written() const { return (word_ & kBeingWritten) != 0; }
  /// Returns true if the payload is valid here: no worker is writing it, and the record has not
  /// moved.
  constexpr bool is_in_place() const { return (word_ & (kBeingWritten | kMoved)) == 0; }
  constexpr bool is_deleted() const { return (word_ & kDeleted) != 0; }
  constexpr bool is_moved() const { return (word_ & kMoved) != 0; }
  constexpr bool is_next_layer() const { return (word_ & kNextLayer) != 0; }
  constexpr bool is_open() const { return (word_ & kOpen) != 0; }
  /// Returns true for a stable tombstone: a worker must change the page word before it can insert
  /// the record again. Readers treat such a tombstone like an absent key (R12). An insert may
  /// revive any other tombstone without a change of that word.
  constexpr bool is_stable_tombstone() const {
    return (word_ & kFlagsMask) == kDeleted && ordinal() != 0;
  }
  /// Returns true if the record is relocated: it is in a twin page or in a next layer, or its page
  /// was evicted.
  constexpr bool is_relocated() const { return (word_ & (kMoved | kNextLayer)) != 0; }
  constexpr Vid with(uint64_t flags) const {
    DCHECK(flags <= kFlagsMask);
    return Vid(word_ | flags);
  }
  /// Returns epoch and ordinal without flags. Versions are comparable, and grow per key (R15).
  constexpr uint64_t version() const { return word_ & ~kFlagsMask; }
  constexpr bool operator==(const Vid&) const = default;

 private:
  uint64_t word_ = 0;
};
static_assert(kMaxEpoch == (uint64_t{1} << 36) - 1);

/// Header of every record in a page.
struct RecordHead {
  McsWord lock;
  uint16_t slot;       // Master-tree: slot number in the page, which leads to the slice; else 0
  uint16_t remainder;  // Master-tree: see TreeRecord; else 0
  std::atomic<uint64_t> vid;

  Vid load_acquire() const {
    // Acquire pairs with the release store of the commit that wrote the payload.
    return Vid(vid.load(std::memory_order_acquire));
  }
};
static_assert(sizeof(RecordHead) == 16);

}  // namespace atolldb
