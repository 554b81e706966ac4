// Segments as files without a name: memfd_create. Nothing of them outlives the processes.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/limits.h"
#include "shared/memory/segment_header.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

constexpr uint64_t round_to_segment(uint64_t bytes) {
  return (bytes + kSegmentStepBytes - 1) / kSegmentStepBytes * kSegmentStepBytes;
}

/// "control", "node3.pool": stands in messages, in /proc/<pid>/maps and in the handover.
std::string segment_name(SegmentKind kind, uint32_t node);

/// What the machine has left. Read from /proc and /sys; tests make their own.
struct MemoryAvailable {
  uint64_t bytes = 0;                        // without swapping, within the control group's limit
  uint64_t huge_pages = 0;                   // of 2 MiB, free and not reserved
  uint64_t huge_pages_total = 0;             // as configured in the kernel
  uint64_t file_limit_bytes = ~uint64_t{0};  // RLIMIT_FSIZE (of a memfd, too)
  uint64_t address_limit_bytes = ~uint64_t{0};  // RLIMIT_AS

  static MemoryAvailable detect();
};

/// Whether segments of these sizes (multiples of 2 MiB) fit; the error says what lacks and what to
/// do. The answer: whether to make them of huge pages.
Result<bool> plan_huge_pages(std::span<const uint64_t> sizes, HugePages mode,
                             const MemoryAvailable& available);

/// A new segment of `bytes` zero bytes, close-on-exec. No memory is taken before it is touched.
Result<UniqueFd> create_segment_file(const std::string& name, uint64_t bytes, bool huge_pages);

}  // namespace atolldb
