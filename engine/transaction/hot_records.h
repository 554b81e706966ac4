// Hot records: those that have lately caused aborts of this worker's transactions. Each worker
// learns from its own aborts, so commits and reads change nothing that is shared or private.
// Thread: the worker's; not shared.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "engine/format/vid.h"
#include "shared/base/check.h"

namespace atolldb {

class HotRecords {
 public:
  /// Records that an abort on this record, after `commits` commits of the worker.
  void record_abort(const RecordHead* record, uint64_t commits) {
    DCHECK(record != nullptr);
    all_.raise(commits);
    failures_ = failures(commits) + 1;
    failed_at_ = commits;
    Entry& entry = entries_[index(record)];
    if (entry.record != record) {
      // A hotter record keeps the place for now, but cools down.
      if (entry.heat.cool(commits) > 1) {
        --entry.heat.value;
        return;
      }
      entry = {record, {}};
    }
    entry.heat.raise(commits);
  }
  /// Returns true if the next attempt should lock hot records that it writes: about half of the
  /// worker's attempts fail, or its present transaction has failed several times.
  bool should_lock(uint64_t commits) {
    return all_.cool(commits) >= kLockFromHeat || failures(commits) >= kLockFromFailures;
  }
  /// Returns true if the next attempt should also lock hot records that it only reads. Such locks
  /// stop writers, so they are only for a transaction that would hardly end otherwise.
  bool should_lock_reads(uint64_t commits) const {
    return failures(commits) >= kLockReadsFromFailures;
  }
  /// Returns true if the record has lately caused an abort of this worker.
  bool is_hot(const RecordHead* record, uint64_t commits) {
    Entry& entry = entries_[index(record)];
    return entry.record == record && entry.heat.cool(commits) != 0;
  }

 private:
  /// Aborts, of which each counts half after kHalfLife commits, a quarter after twice as many, and
  /// so on. With r aborts per commit it is from kHalfLife * r to twice that.
  struct Heat {
    uint32_t value = 0;
    uint64_t cooled_at = 0;

    uint32_t cool(uint64_t commits) {
      DCHECK(cooled_at <= commits);
      const uint64_t halvings = (commits - cooled_at) / kHalfLife;
      value = halvings < 32 ? value >> halvings : 0;
      cooled_at += halvings * kHalfLife;
      return value;
    }
    void raise(uint64_t commits) {
      cool(commits);
      value = std::min(value + 1, kMostHeat);
    }
  };
  struct Entry {
    const RecordHead* record = nullptr;
    Heat heat;
  };

  static constexpr uint32_t kHalfLife = 32;      // commits
  static constexpr uint32_t kMostHeat = 1024;    // so that heat ends after at most 11 half-lives
  static constexpr uint32_t kLockFromHeat = 30;  // reached with one abort per commit
  static constexpr uint32_t kLockFromFailures = 2;
  static constexpr uint32_t kLockReadsFromFailures = 16;
  static constexpr uint32_t kEntries = 256;
  static_assert(std::has_single_bit(kEntries));

  /// Returns the number of aborts since the last commit.
  uint32_t failures(uint64_t commits) const { return commits == failed_at_ ? failures_ : 0; }
  static uint32_t index(const RecordHead* record) {
    const uint64_t mixed = reinterpret_cast<uintptr_t>(record) * 0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(mixed >> (64 - std::countr_zero(kEntries)));
  }

  std::array<Entry, kEntries> entries_{};
  Heat all_;
  uint64_t failed_at_ = 0;  // number of commits at the last abort
  uint32_t failures_ = 0;   // aborts after that many commits
};

}  // namespace atolldb
