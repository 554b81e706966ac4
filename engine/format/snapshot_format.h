// Header of a snapshot file, with its checksum and the hash of the page layouts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/array_page.h"
#include "engine/format/crc32c.h"
#include "engine/format/sequential_page.h"
#include "engine/format/tree_page.h"

namespace atolldb {

inline constexpr uint32_t kSnapshotFileMagic = 0x4e534c41;  // "ALSN"
inline constexpr uint32_t kSnapshotFormatVersion = 3;

/// Page 0 of a snapshot file begins with this header. The rest of the page is zeros. The header is
/// written last, so a file without it is incomplete: it is a leftover.
struct SnapshotFileHeader {
  uint32_t magic;
  uint32_t crc;  // CRC32C of the bytes after this field
  uint32_t version;
  uint32_t snapshot;
  uint8_t cluster_uuid[16];
  uint64_t epoch;        // epoch of the snapshot
  uint64_t page_count;   // number of pages, page 0 included
  uint32_t node;         // node of the file, or kCoordinator
  uint32_t layout_hash;  // hash of the constants on which the page layouts depend
};
static_assert(sizeof(SnapshotFileHeader) == 56);

/// Returns a hash of all constants that define where data lies in a page. A build with other
/// constants cannot read the pages.
inline uint32_t snapshot_layout_hash() {
  constexpr std::array<uint32_t, 19> kConstants = {
      kPageBytes,
      sizeof(PageHeader),
      sizeof(ArrayPage),
      sizeof(RecordHead),
      sizeof(DualPointer),
      kArrayFanout,
      kMaxRecordsPerArrayLeaf,
      sizeof(TreePage),
      TreeRecord::kHeadBytes,
      kMaxBorderSlots,
      kMaxSlotsOfOneSlice,
      kInteriorCapacity,
      kInteriorGuides,
      kBorderGuides,
      kSearchStride,
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
