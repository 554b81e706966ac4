#include "shared/memory/segment_placement.h"

#include <numa.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#include "shared/memory/segment_file.h"

namespace atolldb {
namespace {

/// Allocates the memory of one part. Returns 0, or the error number.
int populate(std::byte* base, uint64_t bytes) {
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  // Kernels before 5.14: touch each page. Pages of a new memfd are zero, so this overwrites no
  // data.
  constexpr uint64_t kStep = 4096;
  for (uint64_t at = 0; at < bytes; at += kStep) {
    std::atomic_ref(base[at]).store(std::byte{0}, std::memory_order_relaxed);
  }
  return 0;
}

}  // namespace

Result<void> bind_memory(const std::string& name, std::byte* base, uint64_t bytes,
                         int32_t numa_node) {
  if (numa_node < 0 || numa_available() < 0 || numa_max_node() == 0) return {};
  long long free_bytes = 0;
  numa_node_size64(numa_node, &free_bytes);
  if (free_bytes > 0 && static_cast<uint64_t>(free_bytes) < bytes) {
    return make_error(ExitCode::resources,
                      "segment " + name + ": NUMA node " + std::to_string(numa_node) +
                          " has only " + std::to_string(free_bytes >> 20) + " MiB free of the " +
                          std::to_string(bytes >> 20) +
                          " MiB needed: lower memory.volatile_pool or change numa_node");
  }
  numa_tonode_memory(base, bytes, numa_node);
  return {};
}

Result<void> prefault_memory(const std::string& name, std::byte* base, uint64_t bytes,
                             uint32_t threads) {
  const uint64_t steps = bytes / kSegmentStepBytes;
  const uint64_t parts = std::clamp<uint64_t>(threads, 1, std::max<uint64_t>(steps, 1));
  std::atomic<int> error{0};
  std::vector<std::thread> workers;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t begin = steps * part / parts * kSegmentStepBytes;
    const uint64_t end = part + 1 == parts ? bytes : steps * (part + 1) / parts * kSegmentStepBytes;
    workers.emplace_back([=, &error] {
      const int failed = populate(base + begin, end - begin);
      if (failed != 0) error.store(failed, std::memory_order_relaxed);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const int failed = error.load(std::memory_order_relaxed);
  if (failed == 0) return {};
  return make_error(ExitCode::resources,
                    "segment " + name + ": its " + std::to_string(bytes >> 20) +
                        " MiB of memory are not to be had: " + std::strerror(failed) +
                        ": lower memory.volatile_pool, or free memory or huge pages");
}

uint32_t mapped_page_bytes(const std::byte* base, uint64_t bytes) {
  std::ifstream file("/proc/self/smaps");
  std::ostringstream start;
  start << std::hex << reinterpret_cast<uintptr_t>(base) << '-';
  uint64_t kernel_page_kib = 4;
  uint64_t huge_kib = 0;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    const bool is_header = line.find(':') == std::string::npos || line.find('-') < line.find(':');
    if (is_header) {
      if (inside) break;
      inside = line.starts_with(start.str());
      continue;
    }
    if (!inside) continue;
    std::istringstream fields(line);
    std::string name;
    uint64_t value = 0;
    fields >> name >> value;
    if (name == "KernelPageSize:") kernel_page_kib = value;
    if (name == "ShmemPmdMapped:") huge_kib = value;
  }
  if (huge_kib * 1024 >= bytes) return static_cast<uint32_t>(kSegmentStepBytes);
  return static_cast<uint32_t>(kernel_page_kib * 1024);
}

}  // namespace atolldb
