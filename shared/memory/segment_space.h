// The segments that one process has mapped, by kind and node. The owner of a segment prepares it:
// it maps, binds and prefaults it, then publishes a header. Other processes attach, and check the
// header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/memory/mapped_segment.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

/// Hash of the sizes of the structs that live in segments. Detects binaries of different builds.
uint64_t layout_hash();

/// Values that all segments of one incarnation share.
struct SegmentIdentity {
  uint64_t cluster_uuid[2] = {0, 0};
  uint64_t config_digest = 0;
};

/// Checks a published header. The error says which field differs from the expected value, and what
/// to do.
Result<void> check_segment_header(const SegmentHeader& header, SegmentKind kind, uint32_t node,
                                  const SegmentIdentity& identity, uint64_t size_bytes);

/// Placement of a segment, chosen by its owner.
struct SegmentPlacement {
  int32_t numa_node = -1;         // -1: any node
  bool transparent_huge = false;  // request huge pages if the file has none
  uint32_t prefault_threads = 1;
  /// `prepare` allocates the memory of these first bytes. The owner allocates the rest.
  uint64_t prefault_bytes = ~uint64_t{0};
};

/// Not thread-safe. Used only while a process starts or stops (in thread mode: the cluster).
class SegmentSpace {
 public:
  /// Role in thread mode, where the kernel chooses the addresses because all threads share one
  /// space.
  static constexpr uint32_t kAnyAddress = ~uint32_t{0};

  /// `files`: descriptors by segment name, owned by the caller. `role` (node id or kCoordinator)
  /// makes addresses differ between the processes of a cluster. A raw pointer that leaks into
  /// shared memory then fails at once. No code relies on these addresses.
  SegmentSpace(std::map<std::string, int> files, SegmentIdentity identity, uint32_t role);
  SegmentSpace(const SegmentSpace&) = delete;
  SegmentSpace& operator=(const SegmentSpace&) = delete;

  /// Owner: maps the zero-filled segment, places it, and allocates its first `prefault_bytes`.
  /// Other processes cannot attach before `publish`. REQUIRES: this space has not mapped the
  /// segment.
  Result<std::byte*> prepare(SegmentKind kind, uint32_t node, const SegmentPlacement& placement);
  /// Owner: writes the header of the formatted segment, with the magic number last.
  void publish(SegmentKind kind, uint32_t node);
  /// Other processes: maps a published segment. Returns the known address if this space has mapped
  /// it already.
  Result<std::byte*> attach(SegmentKind kind, uint32_t node, bool writable);

 private:
  struct Mapping {
    MappedSegment memory;
    bool huge_file = false;
    uint64_t prefaulted_bytes = 0;  // allocated by `prepare`; 0 if another process owns it
  };
  using Key = std::pair<SegmentKind, uint32_t>;

  Result<Mapping*> map(SegmentKind kind, uint32_t node, bool writable);

  std::map<std::string, int> files_;
  SegmentIdentity identity_;
  uint64_t next_hint_;
  std::map<Key, Mapping> mappings_;
};

}  // namespace atolldb
