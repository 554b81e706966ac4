// Decides for each snapshot of the running cluster which older files it makes unnecessary, and
// reports the space of the newest snapshot (R68, R74). The policy itself is in rewrite_policy.h.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/logging/logger.h"
#include "shared/message/control_message.h"
#include "shared/metrics/cluster_metrics.h"

namespace atolldb {

/// Returns the bytes that can be written beside the disk reserve, in the directory with the least
/// room.
Result<uint64_t> room_beside_reserve(const Config& config);

/// Room that a rewrite leaves free beside the reserve. The same job needs it for the pages that the
/// log changes.
inline constexpr uint64_t kRewriteMargin = 64ULL << 20;
/// Number of snapshots without victims after a failed snapshot that had victims. The rewrite may
/// have failed because there was no room. If each later snapshot tried a rewrite and failed, the
/// log would grow without bound.
inline constexpr uint32_t kSnapshotsAfterFailure = 8;
/// Number of snapshots without victims after a useless rewrite. A rewrite is useless if the files
/// of its victims are still needed, because a page could not be read (R56). Its copies are garbage
/// at once, and the next rewrite probably saves nothing either.
///
/// The number doubles each time, up to kMostSnapshotsAfterDamage, until a rewrite succeeds or the
/// cluster restarts. Without the doubling, such copies would fill the disk.
inline constexpr uint32_t kSnapshotsAfterDamage = 32;
inline constexpr uint32_t kMostSnapshotsAfterDamage = kSnapshotsAfterDamage << 15;
/// A snapshot for a low pool has victims only if it is the last of this number in a row, or if the
/// files are much too large. Without these exceptions, the files of a database larger than its
/// pools would grow without bound.
inline constexpr uint32_t kUrgentSnapshots = 8;
/// Files are much too large above this percentage of their target (gleaner.space_percent).
inline constexpr uint64_t kTooLargePercent = 150;
/// A snapshot may always copy 1 / kCopiedPart of the pages that the previous one wrote, without its
/// copies. If changes are uniform and half of the files is garbage, a victim is a fifth live. Then
/// a quarter is enough to remove garbage as fast as it is made. The rest is a margin.
inline constexpr uint64_t kCopiedPart = 2;

/// Thread: one, except for `status`.
class Rewrites {
 public:
  using Room = std::function<Result<uint64_t>()>;

  /// `room`: returns what room_beside_reserve returns. REQUIRES: `config` and `metrics` outlive
  /// this object.
  Rewrites(const Config::Gleaner& config, SnapshotMetrics& metrics, Logger logger, Room room);

  /// The reasons why a snapshot is urgent. An urgent snapshot has no victims, except as
  /// kUrgentSnapshots says.
  struct Urgency {
    bool lacks_log_files = false;
    bool pool_is_low = false;
  };
  /// Returns the victims of the next snapshot, ascending. `newest`: the base of that snapshot.
  std::vector<uint32_t> choose(const SnapshotMetadata& newest, const Urgency& urgency);
  /// Records the result of a snapshot with these victims. `made`: the snapshot, or null if it
  /// failed.
  void record(const std::vector<uint32_t>& victims, const SnapshotMetadata* made);
  /// Records the space of the newest snapshot.
  void record_space(const SnapshotMetadata& newest);

  /// Returns the member "space" of the snapshots' status. Thread: any.
  Json status() const;

 private:
  bool is_much_too_large(const SnapshotMetadata& newest) const;
  void record_room(bool lacks_room);
  void record_new_pages(const SnapshotMetadata& made, uint64_t copied);

  const Config::Gleaner& config_;
  SnapshotMetrics& metrics_;
  Logger logger_;
  const Room room_;
  uint32_t pause_ = 0;                             // snapshots before the next rewrite
  uint32_t damage_pause_ = kSnapshotsAfterDamage;  // next pause_ if victims are still needed (R56)
  uint32_t urgent_count_ = 0;                      // snapshots for a low pool in succession
  uint64_t pages_to_copy_ = 0;                     // live pages of the victims chosen last
  uint64_t written_last_ = 0;  // pages that the last snapshot wrote, without copies
  // Estimate of the pages that a snapshot writes, without copies: the maximum over the latest
  // snapshots. It decays with each snapshot.
  uint64_t new_pages_ = 0;
};

}  // namespace atolldb
