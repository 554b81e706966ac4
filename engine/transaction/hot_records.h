// Hot records: those that have lately caused aborts of this worker's transactions. Each worker
// learns only from its own aborts. Commits and reads write nothing for this.
//
// The policy has four steps, of which an attempt without conflicts pays for none:
// 1. A commit that fails to lock a record that it has read ends (CommitProtocol::lock_contended).
// 2. A retry prefetches what the attempt before has read (Transaction::prefetch_reads).
// 3. If attempts fail often, the worker checks the reads of an attempt before its commit locks
//    (`should_check`). An attempt that would fail then takes no lock, so it stops no other one.
// 4. A transaction that has failed many times locks hot records early (`should_lock`). Early locks
//    cost throughput: others wait for whole transactions. But without them some transactions would
//    fail for as long as others succeed.
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
  struct Policy {
    bool is_on = true;                 // false: plain optimistic transactions
    uint32_t lock_from_failures = 24;  // number of failures in a row before a retry takes locks
  };

  /// Sets the policy, for tests and benchmarks. REQUIRES: no transaction is active.
  void use(Policy policy) { policy_ = policy; }
  bool is_on() const { return policy_.is_on; }

  /// Records an abort that this record has caused. `commits`: the worker's commits so far.
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
  /// Returns true if the worker's last attempt has failed because of a record.
  bool has_failed(uint64_t commits) const { return failures(commits) != 0; }
  /// Returns true if the next attempt should check its reads before it locks: it is a retry, or a
  /// third of the worker's attempts fail.
  bool should_check(uint64_t commits) {
    return is_on() && (has_failed(commits) || all_.cool(commits) >= kCheckFromHeat);
  }
  /// Returns true if the next attempt should lock hot records.
  bool should_lock(uint64_t commits) const {
    return is_on() && failures(commits) >= policy_.lock_from_failures;
  }
  /// Returns true if the record has lately caused an abort of this worker.
  bool is_hot(const RecordHead* record, uint64_t commits) {
    Entry& entry = entries_[index(record)];
    return entry.record == record && entry.heat.cool(commits) != 0;
  }

 private:
  /// Number of aborts, halved every kHalfLife commits. With r aborts per commit it is between
  /// kHalfLife * r and twice that.
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

  static constexpr uint32_t kHalfLife = 32;       // commits
  static constexpr uint32_t kMostHeat = 1024;     // so that heat ends after at most 11 half-lives
  static constexpr uint32_t kCheckFromHeat = 16;  // reached with one abort per two commits
  static constexpr uint32_t kEntries = 256;
  static_assert(std::has_single_bit(kEntries));

  /// Returns the number of aborts since the last commit.
  uint32_t failures(uint64_t commits) const { return commits == failed_at_ ? failures_ : 0; }
  static uint32_t index(const RecordHead* record) {
    const uint64_t mixed = reinterpret_cast<uintptr_t>(record) * 0x9e3779b97f4a7c15ull;
    return static_cast<uint32_t>(mixed >> (64 - std::countr_zero(kEntries)));
  }

  Policy policy_;
  std::array<Entry, kEntries> entries_{};
  Heat all_;
  uint64_t failed_at_ = 0;  // number of commits at the last abort
  uint32_t failures_ = 0;   // aborts after that many commits
};

}  // namespace atolldb
