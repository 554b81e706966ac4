// Layout hash and checksum in the header of a snapshot file.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/array/array_page.h"
#include "engine/log/crc32c.h"
#include "engine/mastertree/page.h"
#include "engine/sequential/page.h"
#include "engine/snapshot/snapshot_files.h"

namespace atolldb {

/// Returns a hash of all constants that define where data lies in a page. A build with other
/// constants cannot read the pages.
inline uint32_t snapshot_layout_hash() {
  constexpr std::array<uint32_t, 16> kConstants = {
      kPageBytes,
      sizeof(PageHeader),
      sizeof(RecordHead),
      sizeof(DualPointer),
      kArrayFanout,
      kMaxRecordsPerArrayLeaf,
      sizeof(TreePage),
      sizeof(TreeRecord),
      kMaxBorderSlots,
      kMaxSlotsOfOneSlice,
      kInteriorCapacity,
      kInteriorGuides,
      offsetof(SequentialPage, data),
      sizeof(SequentialRecord),
      SequentialPage::kMaxRecords,
      kRemainderNextLayer,
  };
  return crc32c(std::as_bytes(std::span(kConstants)));
}

/// Returns the required value of a header's `crc`.
inline uint32_t crc_of(const SnapshotFileHeader& header) {
  constexpr size_t kFirst = offsetof(SnapshotFileHeader, version);
  return crc32c(std::as_bytes(std::span(&header, 1)).subspan(kFirst));
}

}  // namespace atolldb
