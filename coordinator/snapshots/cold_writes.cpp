#include "coordinator/snapshots/cold_writes.h"

#include <algorithm>

#include "shared/base/check.h"
#include "shared/memory/page_header.h"

namespace atolldb {

bool prefers_records(const ColdWritesInput& input) {
  if (input.fits_in_pools) return false;
  if (input.rewritten_pages == 0) return input.uses_records;
  // Pages of a delta tree are about 60 % full.
  const uint64_t records = input.changed_bytes * 10 / 6;
  const uint64_t pages = input.rewritten_pages * kPageBytes;
  return input.uses_records ? records * 10 < pages * 9 : records * 2 < pages;
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
