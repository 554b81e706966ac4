// A recovery in parts, for when there is no room for all of it at once: each part's snapshot covers
// logs, which make room for the next part (rule R54).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/gleaner/glean_plan.h"

namespace atolldb {

/// What a snapshot of `epoch` has to glean of these streams. REQUIRES: each is of a finished
/// incarnation, and has a marker of its last epoch.
std::vector<GleanStream> streams_up_to(std::vector<GleanStream> streams, uint64_t epoch);

/// Which part is tried next. Each attempt covers the epochs after `recovered`, which is the epoch
/// of the newest snapshot, or the one before the first commit.
class RecoverySteps {
 public:
  explicit RecoverySteps(uint64_t last_epoch) : last_epoch_(last_epoch), epoch_(last_epoch) {}

  /// Of the snapshot that is tried.
  uint64_t epoch() const { return epoch_; }
  bool is_last() const { return epoch_ == last_epoch_; }
  /// There was no room: half of it is tried. False: it was a single epoch, or there were too many
  /// attempts.
  bool shrink(uint64_t recovered);
  /// The snapshot exists: twice as much is tried, since there is more room now.
  void advance(uint64_t recovered_before);

 private:
  /// Bounds the time that a hopeless recovery takes.
  static constexpr uint32_t kMaxFailures = 256;

  uint64_t last_epoch_;
  uint64_t epoch_;
  uint32_t failures_ = 0;
};

/// The epoch before the first one of `streams` that no snapshot covers. `snapshot_epoch`: of the
/// newest snapshot, if there is one.
uint64_t recovered_epoch(const std::vector<GleanStream>& streams,
                         std::optional<uint64_t> snapshot_epoch, uint64_t last_epoch);

}  // namespace atolldb
