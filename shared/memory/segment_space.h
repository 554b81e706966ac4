// The segments that one process has mapped, by kind and node. Owners prepare theirs (map, bind,
// prefault, then publish a header), everybody else attaches (checks the whole header).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

/// Hash of the sizes of the structs that live in segments: tells binaries that do not fit together.
uint64_t layout_hash();

/// What all segments of one incarnation have in common.
struct SegmentIdentity {
  uint64_t cluster_uuid[2] = {0, 0};
  uint64_t config_digest = 0;
};

/// Tells which field of a published header differs from what is expected, and what to do.
Result<void> check_segment_header(const SegmentHeader& header, SegmentKind kind, uint32_t node,
                                  const SegmentIdentity& identity, uint64_t size_bytes);

/// Where and how an owner wants its segment.
struct SegmentPlacement {
  int32_t numa_node = -1;         // -1: anywhere
  bool transparent_huge = false;  // ask for huge pages where the file has none
  uint32_t prefault_threads = 1;
};

/// Not thread safe: used while a process (in thread mode: the cluster) starts and stops.
class SegmentSpace {
 public:
  /// No preference for addresses: threads of one process share one space (thread mode).
  static constexpr uint32_t kAnyAddress = ~uint32_t{0};

  /// `files`: descriptors by segment name, owned by the caller. `role` (node id or kCoordinator)
  /// makes the addresses of the processes of a cluster different on purpose, so that a raw pointer
  /// that leaks into shared memory fails at once. Nothing relies on it.
  SegmentSpace(std::map<std::string, int> files, SegmentIdentity identity, uint32_t role);
  SegmentSpace(const SegmentSpace&) = delete;
  SegmentSpace& operator=(const SegmentSpace&) = delete;
  ~SegmentSpace();

  /// Owner: maps the zero-filled segment, places it and takes its memory. Not visible to others
  /// before `publish`.
  Result<std::byte*> prepare(SegmentKind kind, uint32_t node, const SegmentPlacement& placement);
  /// Owner, after formatting: writes the header, the magic number last.
  void publish(SegmentKind kind, uint32_t node);
  /// Others: maps a published segment. Already mapped by this space: gives the same address.
  Result<std::byte*> attach(SegmentKind kind, uint32_t node, bool writable);

 private:
  struct Mapping {
    std::byte* base = nullptr;
    uint64_t bytes = 0;
    bool huge_file = false;
  };
  using Key = std::pair<SegmentKind, uint32_t>;

  Result<Mapping> map(SegmentKind kind, uint32_t node, bool writable);

  std::map<std::string, int> files_;
  SegmentIdentity identity_;
  uint64_t next_hint_;
  std::map<Key, Mapping> mappings_;
};

}  // namespace atolldb
