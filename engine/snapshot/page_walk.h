// What the walks of all storage types share: reading pages and checking their headers.
#pragma once

#include <cstdint>
#include <string>

#include "engine/snapshot/page_output.h"
#include "engine/snapshot/snapshot_walk.h"

namespace atolldb {

class PageWalk {
 public:
  PageWalk(const SnapshotFiles& files, const SnapshotWalkStorage& walked, uint64_t epoch,
           const RecordVisitor& visitor, const UnreadableVisitor& on_unreadable)
      : storage(walked),
        visit_(visitor),
        on_unreadable_(on_unreadable),
        files_(files),
        epoch_(epoch) {}

  /// Reads a page of either type and checks all of its header but level and version word.
  /// `parent`: its page; the root's is itself. False: it cannot be read, which was told with what
  /// `range` answers; the walk goes on behind it.
  template <typename Range>
  Result<bool> read(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                    PageType type, PageType other, uint8_t layer, Range range) {
    if (auto good = files_.read(pointer, &into.header()); !good) {
      if (!on_unreadable_) return std::unexpected(good.error());
      on_unreadable_({storage.id, pointer, 0, range(), good.error().message});
      has_gaps = true;
      return false;
    }
    if (auto good = check(pointer, parent, into, type, other, layer); !good) {
      return std::unexpected(good.error());
    }
    return true;
  }
  /// Counts and visits a record; checks its VID against the page that holds it.
  Result<void> visit(const PageHeader& page, const WalkedRecord& record);
  std::unexpected<Error> wrong(const PageHeader& page, const std::string& reason) const {
    return wrong_page(storage.id, SnapshotPointer(page.self), reason);
  }

  const SnapshotWalkStorage& storage;
  SnapshotWalkTotals totals;
  bool has_gaps = false;  // sums of records need not agree

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
