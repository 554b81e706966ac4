#include "engine/compose/record_counts.h"

#include <algorithm>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Returns the records of `pages` pages if `of_pages` pages have `records` records.
uint64_t scaled(uint64_t records, uint64_t pages, uint64_t of_pages) {
  DCHECK(of_pages != 0);
  return static_cast<uint64_t>(static_cast<double>(records) * static_cast<double>(pages) /
                               static_cast<double>(of_pages));
}

/// Returns an estimate of the records of the pages that were replaced unread.
uint64_t unread_records(const SnapshotMetadata& base, const RecordCount& count,
                        const RecordChange& change) {
  if (change.unread_pages == 0) return 0;
  if (change.sampled_pages != 0) {
    return scaled(change.sampled_records, change.unread_pages, change.sampled_pages);
  }
  // Composers could read no page of the sample.
  uint64_t pages = 0;
  for (const LivePages& live : base.live) {
    if (live.storage_id == count.storage_id) pages += live.all();
  }
  // The live pages are not counted after damage. Then at least these are live.
  pages = std::max(pages, change.unread_pages);
  return scaled(count.records, change.unread_pages, pages);
}

}  // namespace

std::optional<RecordCount> records_after(const SnapshotPlan& plan, const PlannedStorage& storage,
                                         const SnapshotMetadata& base, const RecordChange& change,
                                         bool is_damaged) {
  CHECK(is_tree(storage.type));
  CHECK(plan.base == base.id);
  CHECK(storage.base_root.is_null() || plan.base != 0);
  DCHECK(std::ranges::is_sorted(base.record_counts, {}, &RecordCount::storage_id));
  // Composers have written all pages of the new snapshot.
  const bool is_all_written = storage.base_root.is_null() || (are_all_victims(plan) && !is_damaged);
  if (is_all_written) return RecordCount{storage.id, change.written, false};
  const auto before =
      std::ranges::lower_bound(base.record_counts, storage.id, {}, &RecordCount::storage_id);
  if (before == base.record_counts.end() || before->storage_id != storage.id) return std::nullopt;
  RecordCount count = *before;
  const uint64_t replaced = change.replaced + unread_records(base, *before, change);
  count.records += change.written;
  count.records -= std::min(count.records, replaced);
  count.is_estimate = before->is_estimate || change.unread_pages != 0 || is_damaged;
  DCHECK(count.storage_id == storage.id);
  return count;
}

}  // namespace atolldb
