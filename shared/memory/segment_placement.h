// NUMA binding, prefaulting, and the real page size of a mapped segment.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "shared/base/error.h"

namespace atolldb {

/// Binds the memory of [base, base + bytes) to this NUMA node. Does nothing for -1, or on a machine
/// with one node. REQUIRES: the memory was not touched yet.
Result<void> bind_memory(const std::string& name, std::byte* base, uint64_t bytes,
                         int32_t numa_node);

/// Allocates all memory now, with several threads. Otherwise later accesses would fault, perhaps
/// with a bus error.
Result<void> prefault_memory(const std::string& name, std::byte* base, uint64_t bytes,
                             uint32_t threads);

/// Returns 2 MiB if the kernel maps all of the memory in huge pages, else the page size from
/// /proc/self/smaps.
uint32_t mapped_page_bytes(const std::byte* base, uint64_t bytes);

}  // namespace atolldb
