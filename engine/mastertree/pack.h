// Replaces neighbouring border pages of a hash storage, to keep them full (R101): spreads a full
// page and its neighbours over at most one page more, and packs pages into fewer ones.
#pragma once

#include <cstdint>

#include "engine/format/tree_page.h"
#include "engine/transaction/transaction.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Maximum number of pages that one pack replaces.
inline constexpr uint32_t kMaxPackedPages = 8;
/// Maximum number of pages that one spread replaces. With more pages the result is fuller, and an
/// insert copies more records; see "Cost" in engine/hash/README.md.
inline constexpr uint32_t kMaxSpreadPages = 6;

struct Fraction {
  uint32_t part;
  uint32_t whole;
};
/// How full the new pages are at most, on average. The rest is room for inserts. A larger fraction
/// saves memory, and the next insert into a full page comes sooner.
inline constexpr Fraction kPackedFill{7, 8};
inline constexpr uint32_t kPackedBytes =
    kBorderUsableBytes * kPackedFill.part / kPackedFill.whole;  // of records and slots

/// Packs the pages around `slice`, if that frees at least one of them. Does nothing while many
/// replaced pages wait for their grace. Only tries locks, because no user transaction needs this.
/// Returns whether pages were replaced. REQUIRES: the storage is of type hash and ready; the worker
/// is between transactions, and its begin epoch is published.
bool pack_around(WorkerContext& worker, StorageControl& storage, uint64_t slice);

/// Makes room for a record of `record_bytes` in the full page that holds `slice`: spreads its
/// records and those of neighbours over as many pages or fewer, or over one more if the neighbours
/// are full, too. Only tries locks, and does nothing if the page would not get that room, or
/// already has it. If the page is still full, the caller divides it. Updates the transaction's
/// page-version set (R103), and returns the status of that. REQUIRES: the storage is of type hash
/// and ready; the transaction is active, and the worker holds no lock.
Status spread_around(Transaction& txn, StorageControl& storage, uint64_t slice,
                     uint32_t record_bytes);

/// Queues a hint that the page that holds `slice` was divided, so that it is packed with its
/// neighbours after the transaction. `page`: that page, which is in the first layer.
void push_pack_hint(WorkerContext& worker, const TreePage& page, uint64_t slice);

}  // namespace atolldb
