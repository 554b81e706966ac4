// Rewrite policy: chooses the victims of the next job. Victims are snapshots whose live pages the
// job copies, so that their files can be deleted (R68, R74). The choice is a pure function of the
// counts of live pages (R67).
//
// There are three reasons for victims:
// * The number of live pages of a snapshot is unknown. Such snapshots are copied once, the oldest
//   first.
// * The files hold too much garbage. Then the snapshots with the largest share of garbage are
//   copied.
// * There are files of too many snapshots. Then the snapshots with the fewest live pages are
//   merged. So a page is copied a number of times that grows with the logarithm of the size of the
//   database.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/snapshot/snapshot_metadata.h"

namespace atolldb {

/// Pages in the files of one snapshot, without the header pages.
struct SnapshotSpace {
  uint32_t snapshot = 0;
  uint64_t stored_pages = 0;
  uint64_t live_pages = 0;  // equal to stored_pages if they are not counted
  bool is_counted = true;

  uint64_t garbage_pages() const { return stored_pages - live_pages; }
  bool operator==(const SnapshotSpace&) const = default;
};

/// Returns the space of each snapshot with files, ascending by id.
std::vector<SnapshotSpace> space_of(const SnapshotMetadata& snapshot);

/// The sums over all snapshots.
struct SpaceSums {
  uint64_t stored_pages = 0;
  uint64_t live_pages = 0;

  /// Returns the space amplification in percent: stored pages per live page. Returns 100 if there
  /// are no pages.
  uint64_t amplification_percent() const;
};
SpaceSums sums_of(const std::vector<SnapshotSpace>& space);

struct RewriteLimits {
  uint32_t space_percent = 0;  // value of gleaner.space_percent
  /// Limit of the live pages of all victims (Rewrites::choose). It does not apply to a
  /// single victim, or to merges when there are files of kMostSnapshots snapshots.
  uint64_t pages = 0;
  uint64_t room_pages = 0;  // limit of the live pages of all victims, from the room on the disk
  /// Estimate of the pages that the next snapshot writes, without copies. The snapshot will replace
  /// about as many old pages, so this number is added to the garbage now. Without it, the next
  /// snapshot would exceed the target, and only the snapshot after it could have victims. At most
  /// 1 / kComingShare of the allowed garbage is added.
  uint64_t coming_pages = 0;
};

struct RewriteChoice {
  std::vector<uint32_t> victims;  // ascending
  uint64_t pages = 0;             // live pages of the victims
  bool lacks_room = false;        // a rewrite is due, but no victim fits
};

/// Garbage of up to this number of pages (1 MiB) is not worth a rewrite. Each snapshot of a small
/// database replaces its upper pages, so its files would be rewritten all the time.
inline constexpr uint64_t kLittleGarbagePages = 256;
/// Only 1 / kComingShare of the allowed garbage may come from `coming_pages`. Without this limit,
/// the next snapshot after a bulk load would seem to replace everything.
inline constexpr uint64_t kComingShare = 4;
/// If there are files of this number of snapshots, some are merged. More remain only if
/// gleaner.rewrite_limit or a lack of room prevents the merges.
inline constexpr size_t kManySnapshots = 32;
/// If there are files of this number of snapshots, the smallest are merged even if they exceed
/// gleaner.rewrite_limit. The number must be bounded, because all processes have the files of all
/// nodes open, and messages list them (kMaxControlBytes).
inline constexpr size_t kMostSnapshots = 512;
/// Least number of victims of a merge. Fewer would not be worth it, because the job makes a new
/// snapshot of them.
inline constexpr size_t kLeastMerged = 4;

/// Chooses the victims of the next job. Their live pages fit in `room_pages`. They also fit in
/// `pages`, with two exceptions: a single victim, and merges when there are files of kMostSnapshots
/// snapshots.
RewriteChoice choose_victims(const std::vector<SnapshotSpace>& space, const RewriteLimits& limits);

}  // namespace atolldb
