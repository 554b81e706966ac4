#include "coordinator/snapshots/cold_writes.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/memory/page_header.h"

namespace atolldb {
namespace {

/// Returns the memory of records in a delta tree, whose pages are about 60 % full.
constexpr uint64_t delta_bytes(uint64_t record_bytes) { return record_bytes * 10 / 6; }

/// Returns whether records need so much less memory than pages that a change from pages pays.
constexpr bool need_much_less(uint64_t records, uint64_t pages) { return records * 2 < pages; }

}  // namespace

bool prefers_records(const ColdWritesInput& input) {
  if (input.fits_in_pools) return false;
  if (input.rewritten_pages == 0 || input.is_mixed) return input.uses_records;
  const uint64_t records = delta_bytes(input.changed_bytes);
  const uint64_t pages = input.rewritten_pages * kPageBytes;
  return input.uses_records ? records * 10 < pages * 9 : need_much_less(records, pages);
}

bool copies_too_many_pages(const CopiedPages& counts, uint64_t pool_pages) {
  // If it takes longer than this to fill the pools, the next snapshot decides.
  constexpr double kSecondsToFill = 60;
  // Both numbers may be too large: the log has each change of a record, and later changes may use
  // pages that were copied before.
  const auto pages = static_cast<double>(counts.pages);
  return pages * kSecondsToFill > static_cast<double>(pool_pages) * counts.seconds &&
         need_much_less(delta_bytes(counts.log_bytes), counts.pages * kPageBytes);
}

bool fits_in_pools(const SnapshotMetadata& snapshot, uint64_t pool_pages) {
  // Volatile pages are emptier than those of a snapshot, and installs keep a part of the pool free.
  constexpr uint64_t kPoolPagesPerPage = 2;
  uint64_t pages = 0;
  for (const LivePages& live : snapshot.live) pages += live.all();
  for (const SnapshotFilePlace& file : snapshot.files) {
    if (std::ranges::binary_search(snapshot.uncounted, file.snapshot)) pages += file.page_count;
  }
  return pages * kPoolPagesPerPage <= pool_pages;
}

uint64_t rewritten_pages(const SnapshotMetadata& snapshot, uint32_t storage) {
  CHECK(snapshot.id != 0);
  uint64_t pages = 0;
  for (const LivePages& live : snapshot.live) {
    if (live.storage_id == storage && live.snapshot == snapshot.id) pages += live.all();
  }
  return pages;
}

}  // namespace atolldb
