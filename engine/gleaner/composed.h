// What composers hand to the coordinator, which makes one root of it (foedus.txt section 7.4).
#pragma once

#include <cstdint>
#include <vector>

#include "shared/memory/pointer.h"

namespace atolldb {

/// A page whose parent is still to be written.
struct ComposedPage {
  uint64_t low = 0;  // array: number of its first record; Master-tree: low fence (first layer);
                     // sequential: smallest epoch in its run of pages
  SnapshotPointer page;
  uint32_t level = 0;    // of the page; sequential: 0
  uint32_t pages = 1;    // sequential: pages that follow each other from `page` on
  uint64_t high = 0;     // sequential: largest epoch in them
  uint64_t records = 0;  // sequential: in them

  bool operator==(const ComposedPage&) const = default;
};

/// Of one storage and one partition. Pages ascend and tile the partition's range (arrays: where
/// nothing was ever written there is no page); a page never crosses the partition's bounds.
struct ComposedPartition {
  uint32_t storage_id = 0;
  uint32_t partition = 0;  // index; sequential: the node
  std::vector<ComposedPage> pages;
  uint64_t log_records = 0;  // applied
  uint64_t pages_written = 0;
  uint64_t pages_read = 0;  // of the base
  uint64_t stand_ins = 0;   // pointers to what cannot be read that were met and kept (R56)

  bool operator==(const ComposedPartition&) const = default;
};

}  // namespace atolldb
