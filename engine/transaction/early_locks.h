// Early locks: locks of hot records that a retry takes before its first read (R104 to R106). Other
// transactions cannot change these records until the retry has ended, so it does not fail because
// of them. Early locks only prevent aborts: the commit verifies all reads, locked or not.
// Source: [MOCC16], with an exclusive lock for reads as well.
//
// A transaction that has failed many times plans the locks of its next attempt (HotRecords). That
// attempt takes them when it begins, in universal order. The locks of records that it writes become
// locks of its commit. All others are released when the attempt ends, or before the worker waits
// for anything.
//
// Thread: the worker's; not shared.
#pragma once

#include <array>
#include <cstdint>

#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/base/pointer.h"
#include "shared/base/status.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

class EarlyLocks {
 public:
  /// Maximum number of early locks of a transaction.
  static constexpr uint32_t kMost = 32;
  /// Maximum number of tries that fail, for all locks of an attempt together. The pauses between
  /// them double from kFirstPauses to kMostPauses, so all together take a few milliseconds. Each
  /// try takes the record's cache line from the holder, so frequent tries would slow the holder
  /// down. A queue would be fair, but with more threads than cores each lock would wait until its
  /// next holder has a core.
  static constexpr uint32_t kMostPolls = 32;
  static constexpr uint32_t kFirstPauses = 128;
  static constexpr uint32_t kMostPauses = 4096;

  explicit EarlyLocks(McsLocker& locker) : locker_(&locker) {}

  // -- Plan ---------------------------------------------------------------------------------------
  /// Adds a record to the plan. Does nothing if it is in the plan, or if the plan is full.
  /// REQUIRES: no lock is held; the begin epoch protects the record until the plan is discarded.
  void plan(RecordHead* record, UniversalName name);
  /// Discards the plan. REQUIRES: no lock is held.
  void discard_plan() {
    DCHECK(!holds_any());
    size_ = 0;
  }
  /// Returns the number of planned locks, including those that are held.
  uint32_t size() const { return size_; }

  // -- Locks --------------------------------------------------------------------------------------
  /// Tries to take lock number `i` of the plan until `polls` is 0. Subtracts the tries that have
  /// failed. Returns whether it has the lock. Takes none if the record is relocated. REQUIRES: no
  /// lock from number `i` on is held, and no other lock (R104).
  bool take(uint32_t i, uint32_t& polls);
  bool holds_any() const { return held_ != 0; }
  bool holds(uint32_t i) const { return ((held_ >> i) & 1) != 0; }
  /// Returns true if a lock after `name` in universal order is held.
  bool holds_after(UniversalName name) const {
    for (uint32_t i = size_; i > 0 && name < locks_[i - 1].name; --i) {
      if (holds(i - 1)) return true;
    }
    return false;
  }
  /// Hands the lock `name` over to the commit, as an ordinary lock. Returns false if the lock is
  /// not held.
  bool take_over(UniversalName name);
  /// Releases the locks after `name` in universal order.
  void release_after(UniversalName name);
  /// Releases all locks.
  void release();

 private:
  struct Lock {
    UniversalName name;
    RecordHead* record = nullptr;
  };

  void release_one(uint32_t i);

  McsLocker* locker_;
  uint32_t size_ = 0;
  uint32_t held_ = 0;              // bit i: lock number i is held
  std::array<Lock, kMost> locks_;  // the first size_ are the plan, in universal order
};
static_assert(EarlyLocks::kMost <= 32);  // bits of held_

}  // namespace atolldb
