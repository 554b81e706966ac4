// Replacing a border page by one or two successors: split (foster twins), compaction (R45),
// enlarging a record. One piece of code, since all of them move every record (R7, R10, R43).
#pragma once

#include <cstdint>

#include "engine/mastertree/build.h"
#include "engine/mastertree/key.h"
#include "engine/mastertree/page.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// Why the page is replaced.
struct RestructureRequest {
  /// Room for a new key, if `new_record_bytes` is not zero.
  uint64_t new_slice = 0;
  uint32_t new_record_bytes = 0;
  /// This record gets at least `grow_capacity` bytes of payload, if not null.
  const TreeRecord* grow = nullptr;
  uint32_t grow_capacity = 0;
  /// Leaving out dead records is all that is wanted: exactly one successor.
  bool compaction_only = false;
};

/// VID epochs up to here belong to records that nobody may still depend on when they are dead:
/// final, and deleted before any running transaction began (R10).
uint64_t removable_epoch(const WorkerContext& worker);
inline bool is_removable(Vid vid, uint64_t limit) {
  return vid.is_deleted() && !vid.is_next_layer() && vid.epoch() <= limit;
}

/// Pages to reserve before the locks (R23): the twins.
inline constexpr uint32_t kPagesPerRestructure = 2;

/// `page` is locked with kPageBlock and not moved; kPagesPerRestructure pages are reserved. `txn`:
/// whose sets follow the move (R13), or null between transactions. Afterwards the page is still
/// locked, and moved unless said otherwise. ok; phantom, transaction_too_large: the transaction
/// must abort. Nothing was changed: payload_too_long: one slice's records alone do not fit a page;
/// write_conflict: they will, once dead ones that are too young to be left out may go, or another
/// thread has locked a record of a page that is to be compacted; cluster_failed.
Status restructure(WorkerContext& worker, Transaction* txn, BorderPage* page,
                   const RestructureRequest& request);

}  // namespace atolldb
