// Reads pages and checks their headers, for the walks of all storage types.
#pragma once

#include <cstdint>
#include <string>

#include "engine/compose/page_output.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/try.h"

namespace atolldb {

class PageWalk {
 public:
  PageWalk(const SnapshotFiles& files, const SnapshotWalkStorage& walked, uint64_t epoch,
           const RecordVisitor& visitor, const UnreadableVisitor& on_unreadable,
           const WalkRange& visited)
      : storage(walked),
        range(visited),
        has_gaps(!visited.is_whole()),
        visit_(visitor),
        on_unreadable_(on_unreadable),
        files_(files),
        epoch_(epoch) {}

  /// Reads a page of `type` or `other` and checks its whole header except level and version word.
  /// `parent`: the page that leads to this one; for the root, the root itself. If the page cannot
  /// be read, calls `on_unreadable` with the result of `text`, and returns false: the walk
  /// continues after the page. Returns the error if there is no `on_unreadable`.
  template <typename Range>
  Result<bool> read(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                    PageType type, PageType other, uint8_t layer, Range text) {
    if (auto good = files_.read(pointer, &into.header()); !good) {
      if (!on_unreadable_) return std::unexpected(good.error());
      on_unreadable_({storage.id, pointer, 0, text(), good.error().message});
      has_gaps = true;
      return false;
    }
    ATOLL_TRY(check(pointer, parent, into, type, other, layer));
    return true;
  }
  /// Counts and visits a record. Checks its VID against the page that holds it.
  Result<void> visit(const PageHeader& page, const WalkedRecord& record);
  std::unexpected<Error> wrong(const PageHeader& page, const std::string& reason) const {
    return wrong_page(storage.id, SnapshotPointer(page.self), reason);
  }

  const SnapshotWalkStorage& storage;
  const WalkRange range;
  SnapshotWalkTotals totals;
  bool has_gaps;  // true: not all pages are read, so record counts need not match
  PageCounts live = {};
  bool is_second_pass = false;  // true: the pages that are read now were counted before

 private:
  Result<void> check(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                     PageType type, PageType other, uint8_t layer);

  const RecordVisitor& visit_;
  const UnreadableVisitor& on_unreadable_;
  PageReader files_;
  uint64_t epoch_;
};

Result<void> walk_array(PageWalk& walk);
Result<void> walk_mastertree(PageWalk& walk);
Result<void> walk_sequential(PageWalk& walk);

}  // namespace atolldb
