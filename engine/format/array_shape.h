// Geometry of an array's radix tree, the same for volatile and snapshot pages.
#pragma once

#include <algorithm>
#include <cstdint>

#include "engine/format/array_page.h"
#include "engine/format/log_record.h"

namespace atolldb {

struct ArrayShape {
  ArrayShape(uint64_t record_count_of_all, uint32_t payload_bytes_of_one)
      : record_count(record_count_of_all),
        payload_bytes(payload_bytes_of_one),
        record_bytes(static_cast<uint32_t>(sizeof(RecordHead)) + align8(payload_bytes)),
        records_per_leaf(std::min(static_cast<uint32_t>(sizeof(ArrayLeaf::data)) / record_bytes,
                                  kMaxRecordsPerArrayLeaf)) {
    uint64_t pages = (record_count + records_per_leaf - 1) / records_per_leaf;
    for (; pages > 1; pages = (pages + kArrayFanout - 1) / kArrayFanout) ++levels;
  }

  /// Returns the number of records below a page of this level. Level 0: a leaf.
  uint64_t records_below(uint32_t level) const {
    uint64_t records = records_per_leaf;
    for (uint32_t i = 0; i < level; ++i) records *= kArrayFanout;
    return records;
  }

  /// Returns the number of records below one child of the root, or of all if the root is a leaf.
  /// Partitions consist of such children.
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
