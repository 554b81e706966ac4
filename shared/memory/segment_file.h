// Segments as anonymous files (memfd_create), which do not outlive the cluster's processes. Also
// checks memory limits, binds memory to NUMA nodes, prefaults it, and finds the real page size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "shared/base/error.h"
#include "shared/base/limits.h"
#include "shared/base/unique_fd.h"
#include "shared/config/config.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

constexpr uint64_t round_to_segment(uint64_t bytes) {
  return (bytes + kSegmentStepBytes - 1) / kSegmentStepBytes * kSegmentStepBytes;
}

/// Returns a name like "control" or "node3.pool". It appears in messages, in /proc/<pid>/maps and
/// in the handover.
std::string segment_name(SegmentKind kind, uint32_t node);

/// Memory that the machine has available, read from /proc and /sys. Tests set their own values.
struct MemoryAvailable {
  uint64_t bytes = 0;             // without swapping, and below the control group's limit
  uint64_t huge_pages = 0;        // pages of 2 MiB that are free and not reserved
  uint64_t huge_pages_total = 0;  // as configured in the kernel
  uint64_t file_limit_bytes = ~uint64_t{0};     // RLIMIT_FSIZE, which also limits a memfd
  uint64_t address_limit_bytes = ~uint64_t{0};  // RLIMIT_AS

  static MemoryAvailable detect();
};

/// Returns whether to use huge pages for segments of these sizes (multiples of 2 MiB). Returns an
/// error if the segments do not fit; it says what is missing and what to do.
Result<bool> plan_huge_pages(std::span<const uint64_t> sizes, HugePages mode,
                             const MemoryAvailable& available);

/// Creates a segment of `bytes` zero bytes, close-on-exec. Its memory is allocated on first access.
Result<UniqueFd> create_segment_file(const std::string& name, uint64_t bytes, bool huge_pages);

/// Binds the memory of [base, base + bytes) to this NUMA node. Does nothing for -1, or on a machine
/// with one node. REQUIRES: the memory was not touched yet.
Result<void> bind_memory(const std::string& name, std::byte* base, uint64_t bytes,
                         int32_t numa_node);

/// Allocates all memory now, with several threads. Without this call, later accesses would fault,
/// perhaps with a bus error.
Result<void> prefault_memory(const std::string& name, std::byte* base, uint64_t bytes,
                             uint32_t threads);

/// Returns 2 MiB if the kernel maps all of the memory in huge pages, else the page size from
/// /proc/self/smaps.
uint32_t mapped_page_bytes(const std::byte* base, uint64_t bytes);

}  // namespace atolldb
