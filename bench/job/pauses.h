// Times in which a run made no progress: no worker counted a commit.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "shared/base/check.h"

namespace atolldb::bench {

/// A time without a commit, in the unit of its source: ticks, or monotonic_ns().
struct Pause {
  uint64_t begin;
  uint64_t end;

  friend bool operator==(const Pause&, const Pause&) = default;
};

/// Pauses of one worker or of a whole cluster: disjoint and ascending.
using Pauses = std::vector<Pause>;

/// Shorter pauses are not recorded, so that the list of a worker is short: at most 20 pauses per
/// second.
inline constexpr uint64_t kShortestPauseNs = 50'000'000;

/// Records the pauses of one worker. Thread: the worker.
class PauseRecorder {
 public:
  /// Begins the measured time. `shortest`: length of the shortest pause that is recorded.
  void start(uint64_t now, uint64_t shortest) {
    CHECK(shortest != 0);
    pauses_.clear();
    last_ = now;
    shortest_ = shortest;
  }
  /// Records that a commit counted. REQUIRES: start was called, or the pauses are not asked for.
  void commit(uint64_t now) {
    if (now > last_ && now - last_ >= shortest_) [[unlikely]]
      pauses_.push_back({last_, now});
    last_ = now;
  }
  /// Ends the measured time, and returns the pauses.
  Pauses finish(uint64_t end) {
    commit(end);
    return std::move(pauses_);
  }

 private:
  Pauses pauses_;
  uint64_t last_ = 0;
  uint64_t shortest_ = ~uint64_t{0};  // before start: no time is a pause
};

/// Returns the times that are in a pause of `a` and in a pause of `b`.
Pauses common_pauses(const Pauses& a, const Pauses& b);

/// Returns the length of the longest pause, or 0 without pauses.
uint64_t longest_pause(const Pauses& pauses);

}  // namespace atolldb::bench
