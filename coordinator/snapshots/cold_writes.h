// Chooses whether writes to cold records bring whole pages or single records into memory (R76).
#pragma once

#include <cstdint>

#include "engine/snapshot/snapshot_metadata.h"
#include "shared/config/config.h"

namespace atolldb {

/// What is known of a storage after a snapshot was installed.
struct ColdWritesInput {
  bool fits_in_pools = true;   // pages for all data fit in the pools
  bool uses_records = false;   // the present choice for the storage
  bool is_mixed = false;       // the snapshot has changes from before a revised choice, too
  uint64_t changed_bytes = 0;  // memory of the records that changed since the snapshot before
  uint64_t rewritten_pages =
      0;  // pages of the storage that the snapshot wrote for that; 0: unknown
};

/// Returns whether records are the better choice: they need less memory than their pages, by a
/// margin that keeps the present choice.
bool prefers_records(const ColdWritesInput& input);

/// Counts since the previous check, about 0.2 s ago.
struct CopiedPages {
  uint64_t pages = 0;      // snapshot pages of one storage that were copied into memory
  uint64_t log_bytes = 0;  // log records of all storages
  double seconds = 0;
};

/// Returns whether records are clearly the better choice: writes copied many pages for few changes,
/// and at this rate they fill the pools within a minute. Then a storage does not wait for the next
/// snapshot. `pool_pages`: pages of all pools.
bool copies_too_many_pages(const CopiedPages& counts, uint64_t pool_pages);

/// Returns whether volatile pages for the whole content of a snapshot fit in pools of `pool_pages`.
bool fits_in_pools(const SnapshotMetadata& snapshot, uint64_t pool_pages);

/// Returns how many pages the snapshot wrote for the storage.
uint64_t rewritten_pages(const SnapshotMetadata& snapshot, uint32_t storage);

}  // namespace atolldb
