// Packs neighbouring border pages of a hash storage into fewer, fuller pages (R101).
#pragma once

#include <cstdint>

#include "engine/format/tree_page.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Maximum number of pages that one pack replaces. With more pages the result is fuller, and an
/// insert costs more: full pages are divided again sooner.
inline constexpr uint32_t kMaxPackedPages = 8;
/// Average bytes of records and slots in a packed page. The rest is room for inserts, so that the
/// next few inserts do not divide the page again.
inline constexpr uint32_t kPackedBytes = kBorderUsableBytes * 11 / 12;

/// Packs the pages around `slice`, if that frees at least one of them. Does nothing while many
/// replaced pages wait for their grace. Only tries locks, because no user transaction needs this.
/// Returns whether pages were replaced. REQUIRES: the storage is of type hash and ready; the worker
/// is between transactions, and its begin epoch is published.
bool pack_around(WorkerContext& worker, StorageControl& storage, uint64_t slice);

/// Queues a hint that the page that holds `slice` was divided, so that it is packed with its
/// neighbours after the transaction. `page`: that page, which is in the first layer.
void push_pack_hint(WorkerContext& worker, const TreePage& page, uint64_t slice);

}  // namespace atolldb
