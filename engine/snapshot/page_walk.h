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
           const RecordVisitor& visitor)
      : storage(walked), visit_(visitor), files_(files), epoch_(epoch) {}

  /// Reads a page and checks all of its header but level and version word. `parent`: its page; the
  /// root's is itself.
  Result<void> read(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                    PageType type, uint8_t layer) {
    return read(pointer, parent, into, type, type, layer);
  }
  /// The same, of a page that may be of either type.
  Result<void> read(SnapshotPointer pointer, SnapshotPointer parent, PageBuffer& into,
                    PageType type, PageType other, uint8_t layer);
  /// Counts and visits a record; checks its VID against the page that holds it.
  Result<void> visit(const PageHeader& page, const WalkedRecord& record);
  std::unexpected<Error> wrong(const PageHeader& page, const std::string& reason) const {
    return wrong_page(storage.id, SnapshotPointer(page.self), reason);
  }

  const SnapshotWalkStorage& storage;
  SnapshotWalkTotals totals;

 private:
  const RecordVisitor& visit_;
  PageReader files_;
  uint64_t epoch_;
};

Result<void> walk_array(PageWalk& walk);
Result<void> walk_mastertree(PageWalk& walk);
Result<void> walk_sequential(PageWalk& walk);

}  // namespace atolldb
