// Layout of array pages: 64-byte header, then records (leaf) or dual pointers (interior).
#pragma once

#include <cstdint>

#include "engine/format/vid.h"
#include "shared/memory/page_header.h"

namespace atolldb {

#ifdef ATOLL_STRESS
inline constexpr uint32_t kArrayFanout = 3;
inline constexpr uint32_t kMaxRecordsPerArrayLeaf = 2;
#else
inline constexpr uint32_t kArrayFanout = (kPageBytes - sizeof(PageHeader)) / sizeof(DualPointer);
inline constexpr uint32_t kMaxRecordsPerArrayLeaf = ~uint32_t{0};
#endif

struct ArrayInterior {
  PageHeader header;
  DualPointer children[kArrayFanout];
};
static_assert(sizeof(ArrayInterior) <= kPageBytes);

struct ArrayLeaf {
  PageHeader header;
  std::byte data[kPageBytes - sizeof(PageHeader)];

  RecordHead* record(uint64_t slot, uint32_t record_bytes) {
    return reinterpret_cast<RecordHead*>(data + slot * record_bytes);
  }
};
static_assert(sizeof(ArrayLeaf) == kPageBytes);

}  // namespace atolldb
