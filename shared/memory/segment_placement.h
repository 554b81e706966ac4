// Where the memory of a mapped segment comes from, and of which pages it is really made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shared/error.h"

namespace atolldb {

/// Memory of [base, base + bytes) comes from this NUMA node from now on. -1, or a machine with one
/// node: does nothing. REQUIRES: not touched yet.
Result<void> bind_memory(const std::string& name, std::byte* base, uint64_t bytes,
                         int32_t numa_node);

/// Takes all memory now, with several threads, rather than by page faults (or a bus error) later.
Result<void> prefault_memory(const std::string& name, std::byte* base, uint64_t bytes,
                             uint32_t threads);

/// 2 MiB if the kernel really maps all of it in huge pages, else 4096 (from /proc/self/smaps).
uint32_t mapped_page_bytes(const std::byte* base, uint64_t bytes);

}  // namespace atolldb
