// Rewrite policy: the choice of victims, the snapshots whose live pages the next job copies so that
// their files can be deleted (R68, R74). A pure function of the counts of live pages (R67).
//
// There are three reasons for victims:
// * The live pages of a snapshot are unknown. Such snapshots are copied once, the oldest first.
// * The files hold too much garbage. Then those with the largest share of it are copied.
// * There are files of too many snapshots. Then those with the fewest live pages are merged. So a
//   page is copied a number of times that grows with the logarithm of the size of the database.
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
  uint64_t live_pages = 0;  // as many as stored, if they are not counted
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

  /// Returns the space amplification in percent: stored pages per live page. 100 without any page.
  uint64_t amplification_percent() const;
};
SpaceSums sums_of(const std::vector<SnapshotSpace>& space);

struct RewriteLimits {
  uint32_t space_percent = 0;  // gleaner.space_percent
  /// gleaner.rewrite_limit: for all victims, unless there is only one, or kMostSnapshots.
  uint64_t pages = 0;
  uint64_t room_pages = 0;  // for all victims: what fits beside the reserve
  /// Pages that the next snapshot probably writes apart from copies. They replace as many, so they
  /// count as garbage now: otherwise that snapshot would exceed the target before the one after it
  /// has victims. Counts up to 1 / kComingShare of the garbage that the target allows.
  uint64_t coming_pages = 0;
};

struct RewriteChoice {
  std::vector<uint32_t> victims;  // ascending
  uint64_t pages = 0;             // live pages of the victims
  bool lacks_room = false;        // a rewrite is due, and no victim fits
};

/// Garbage of up to so many pages, 1 MiB, is not worth a rewrite. The upper pages of a small
/// database change with each snapshot, so its files would be rewritten all the time.
inline constexpr uint64_t kLittleGarbagePages = 256;
/// After a bulk load the next snapshot would seem to replace everything. So only a part counts.
inline constexpr uint64_t kComingShare = 4;
/// With files of this many snapshots, some are merged. There are more only if gleaner.rewrite_limit
/// prevents the merges.
inline constexpr size_t kManySnapshots = 32;
/// With files of this many snapshots, the smallest are merged even past gleaner.rewrite_limit. All
/// processes have the files of all nodes open, and messages name them (kMaxControlBytes).
inline constexpr size_t kMostSnapshots = 512;
/// A merge has at least this many victims, since it makes one new snapshot of them.
inline constexpr size_t kLeastMerged = 4;

/// Chooses the victims of the next job. Their live pages fit in `room_pages`, and in `pages` unless
/// there is a single victim.
RewriteChoice choose_victims(const std::vector<SnapshotSpace>& space, const RewriteLimits& limits);

}  // namespace atolldb
