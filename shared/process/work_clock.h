// Counts the processor time of a thread by the phases of snapshots.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/memory/gleaner_metrics.h"

namespace atolldb {

/// Adds the processor time of one thread to the counters of its node. Each call reads the clock of
/// the thread, a system call of less than a microsecond. Thread: the one that called `begin` last.
class WorkClock {
 public:
  /// `times`: outlives the clock; null: nothing is counted.
  explicit WorkClock(SnapshotWorkTimes* times) : times_(times) {}

  /// Begins to count for the calling thread.
  void begin() { before_ = times_ == nullptr ? Used() : used(); }
  /// Adds the time since the last call of `begin` or `charge` to a phase.
  void charge(SnapshotWork work) {
    if (times_ == nullptr) return;
    const auto index = static_cast<uint32_t>(work);
    CHECK(index < kSnapshotWorkCount);
    const Used now = used();
    DCHECK(now.user_us >= before_.user_us && now.system_us >= before_.system_us);
    // Relaxed: for display only.
    times_->user_us[index].fetch_add(now.user_us - before_.user_us, std::memory_order_relaxed);
    times_->system_us[index].fetch_add(now.system_us - before_.system_us,
                                       std::memory_order_relaxed);
    before_ = now;
  }

 private:
  struct Used {
    uint64_t user_us = 0;
    uint64_t system_us = 0;
  };
  static uint64_t us_of(const timeval& time) {
    return static_cast<uint64_t>(time.tv_sec) * 1'000'000 + static_cast<uint64_t>(time.tv_usec);
  }
  static Used used() {
    rusage usage{};
    const int failed = getrusage(RUSAGE_THREAD, &usage);
    CHECK(failed == 0);
    return {us_of(usage.ru_utime), us_of(usage.ru_stime)};
  }

  SnapshotWorkTimes* times_;
  Used before_;
};

}  // namespace atolldb
