// Header of every segment. Processes check it when they attach.
#pragma once

#include <cstdint>

namespace atolldb {

inline constexpr uint64_t kSegmentMagic = 0x314c4c4f5441ull;  // "ATOLL1"
inline constexpr uint32_t kLayoutVersion = 2;

enum class SegmentKind : uint32_t { control = 1, shared, pool, local, metrics, session, exchange };

struct SegmentHeader {
  uint64_t magic;
  uint32_t layout_version;
  SegmentKind kind;
  uint64_t layout_hash;  // hash of the sizes of structs that live in segments
  uint64_t cluster_uuid[2];
  uint64_t config_digest;
  int64_t owner_pid;
  uint64_t owner_start_time;  // clock ticks since boot, /proc/<pid>/stat field 22
  uint64_t size_bytes;
  uint32_t node;             // node id, or kCoordinator
  uint32_t real_page_bytes;  // page size that is really mapped (4096 or 2 MiB)
  uint64_t spare[6];
};
static_assert(sizeof(SegmentHeader) == 128);

}  // namespace atolldb
