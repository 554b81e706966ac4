// Recovery in parts, for a disk that has no room for one snapshot of all epochs. The snapshot of
// each part covers logs, and their deletion makes room for the next part (R54).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/gleaner/snapshot_plan.h"

namespace atolldb {

/// Returns the part of these streams that a snapshot of `epoch` has to read. REQUIRES: each stream
/// is of an ended incarnation, and has a marker of its last epoch.
std::vector<PlannedStream> streams_up_to(std::vector<PlannedStream> streams, uint64_t epoch);

/// Chooses the next part of a recovery. Each part begins after the epoch `recovered`, which is the
/// epoch of the newest snapshot, or the epoch before the first commit.
class RecoverySteps {
 public:
  explicit RecoverySteps(uint64_t last_epoch) : last_epoch_(last_epoch), epoch_(last_epoch) {}

  /// Returns the epoch of the snapshot to try next.
  uint64_t epoch() const { return epoch_; }
  bool is_last() const { return epoch_ == last_epoch_; }
  /// Halves the part, because there was no room for its snapshot. Returns false if the part was a
  /// single epoch, or after too many attempts.
  bool shrink(uint64_t recovered);
  /// Chooses a part that is twice as long as the last one, which has succeeded and made room.
  /// `recovered_before`: the epoch after which the last part began. `recovered`: the epoch after
  /// which the next part begins. It is later than epoch() if no log has commits of the epochs in
  /// between. REQUIRES: recovered_before < epoch() <= recovered.
  void advance(uint64_t recovered_before, uint64_t recovered);

 private:
  /// Maximum number of calls of `shrink`. It bounds the time of a recovery that cannot succeed.
  static constexpr uint32_t kMaxFailures = 256;

  uint64_t last_epoch_;
  uint64_t epoch_;  // last_epoch_, or an epoch after the last `recovered`
  uint32_t failures_ = 0;
};

/// Returns the epoch before the first epoch of `streams` that no snapshot covers, or `last_epoch`
/// if there are no streams. `snapshot_epoch`: epoch of the newest snapshot, if there is one.
uint64_t recovered_epoch(const std::vector<PlannedStream>& streams,
                         std::optional<uint64_t> snapshot_epoch, uint64_t last_epoch);

}  // namespace atolldb
