// Layout of array pages: 64 bytes of header and lock, then records (leaf) or dual pointers
// (interior). This file also has the geometry of the radix tree that the pages form.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "shared/base/check.h"
#include "shared/memory/page_header.h"
#include "shared/sync/mcs_lock.h"

namespace atolldb {

struct alignas(64) ArrayPage {
  PageHeader header;
  McsWord lock;  // only system transactions take page locks
  uint32_t spare[3];
};
static_assert(sizeof(ArrayPage) == 64);

#ifdef ATOLL_STRESS
inline constexpr uint32_t kArrayFanout = 3;
inline constexpr uint32_t kMaxRecordsPerArrayLeaf = 2;
#else
inline constexpr uint32_t kArrayFanout = (kPageBytes - sizeof(ArrayPage)) / sizeof(DualPointer);
inline constexpr uint32_t kMaxRecordsPerArrayLeaf = ~uint32_t{0};
#endif

struct ArrayInterior : ArrayPage {
  DualPointer children[kArrayFanout];
};
static_assert(sizeof(ArrayInterior) <= kPageBytes);

struct ArrayLeaf : ArrayPage {
  std::byte data[kPageBytes - sizeof(ArrayPage)];

  RecordHead* record(uint64_t slot, uint32_t record_bytes) {
    DCHECK(record_bytes % 8 == 0 && record_bytes >= sizeof(RecordHead));
    DCHECK((slot + 1) * record_bytes <= sizeof data);
    return reinterpret_cast<RecordHead*>(data + slot * record_bytes);
  }
};
static_assert(sizeof(ArrayLeaf) == kPageBytes);

/// Geometry of an array's radix tree, the same for volatile and snapshot pages.
struct ArrayShape {
  ArrayShape(uint64_t record_count_of_all, uint32_t payload_bytes_of_one)
      : record_count(record_count_of_all),
        payload_bytes(payload_bytes_of_one),
        record_bytes(static_cast<uint32_t>(sizeof(RecordHead)) + align8(payload_bytes)),
        records_per_leaf(std::min(static_cast<uint32_t>(sizeof(ArrayLeaf::data)) / record_bytes,
                                  kMaxRecordsPerArrayLeaf)) {
    CHECK(records_per_leaf != 0);
    uint64_t pages = (record_count + records_per_leaf - 1) / records_per_leaf;
    for (; pages > 1; pages = (pages + kArrayFanout - 1) / kArrayFanout) ++levels;
  }

  /// Returns the number of records below a page of this level. Level 0: a leaf.
  uint64_t records_below(uint32_t level) const {
    DCHECK(level < levels);
    uint64_t records = records_per_leaf;
    for (uint32_t i = 0; i < level; ++i) records *= kArrayFanout;
    return records;
  }

  /// Returns the number of records below one child of the root, or the number of all records if the
  /// root is a leaf. A partition consists of whole children of the root.
  uint64_t records_below_root_child() const {
    return levels == 1 ? std::max<uint64_t>(1, record_count) : records_below(levels - 2);
  }

  uint64_t record_count;
  uint32_t payload_bytes;
  uint32_t record_bytes;
  uint32_t records_per_leaf;
  uint32_t levels = 1;  // 1: the root is a leaf
};

}  // namespace atolldb
