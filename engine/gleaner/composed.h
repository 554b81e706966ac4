// The results of composers. The coordinator combines them below one root.
// Source: [FOEDUS15] section 7.4.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/base/pointer.h"

namespace atolldb {

/// A page whose parent is not written yet.
struct ComposedPage {
  // Array: number of the first record. Master-tree: low fence in the first layer. Sequential:
  // smallest epoch in the run of pages.
  uint64_t low = 0;
  SnapshotPointer page;
  uint32_t level = 0;    // level of the page; sequential: 0, or 1 for a lost root
  uint32_t pages = 1;    // sequential: number of adjacent pages from `page` on
  uint64_t high = 0;     // sequential: largest epoch in the pages
  uint64_t records = 0;  // sequential: records in the pages

  bool operator==(const ComposedPage&) const = default;
};

/// Sequential storages: a root page of the base that a rewrite could not read. Its runs, and those
/// of all older root pages, are not among the composed pages (R56).
inline ComposedPage lost_root(SnapshotPointer root) {
  return {.page = root, .level = 1, .pages = 0};
}
inline bool is_lost_root(const ComposedPage& page) { return page.level == 1 && page.pages == 0; }

/// The pages of one partition of one storage. They ascend and tile the partition's range. Ranges of
/// an array that were never written have no page. No page crosses the bounds of the partition.
struct ComposedPartition {
  uint32_t storage_id = 0;
  uint32_t partition = 0;  // index; sequential: the node
  std::vector<ComposedPage> pages;
  uint64_t log_records = 0;  // log records that were applied
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;  // pages of the base that were read
  uint64_t stand_ins = 0;   // pointers to unreadable pages that were found and retained (R56)

  bool operator==(const ComposedPartition&) const = default;
};

}  // namespace atolldb
