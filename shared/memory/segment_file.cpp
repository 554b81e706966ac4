#include "shared/memory/segment_file.h"

#include <linux/memfd.h>
#include <numa.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <thread>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {
namespace {

uint64_t read_number(const std::string& path, uint64_t none) {
  std::ifstream file(path);
  uint64_t number = 0;
  return file >> number ? number : none;
}

/// Returns the value of a line "Name: 123 kB" or "name 123" of a file, times `unit`, or 0 without
/// such a line.
uint64_t read_field(const std::string& path, const std::string& name, uint64_t unit) {
  std::ifstream file(path);
  std::string word;
  while (file >> word) {
    uint64_t number = 0;
    if (word == name && file >> number) return number * unit;
    std::getline(file, word);
  }
  return 0;
}

uint64_t resource_limit(int resource) {
  rlimit limit{};
  if (getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0) return ~uint64_t{0};
  return limit.rlim_cur == RLIM_INFINITY ? ~uint64_t{0} : limit.rlim_cur;
}

/// Returns the memory left below the limit of a control group (version 2) in `folder`.
uint64_t group_available(const std::string& folder) {
  const uint64_t limit = read_number(folder + "/memory.max", ~uint64_t{0});
  if (limit == ~uint64_t{0}) return limit;
  const uint64_t used = read_number(folder + "/memory.current", 0);
  const uint64_t reclaimable = read_field(folder + "/memory.stat", "inactive_file", 1);
  return limit - std::min(limit, used - std::min(used, reclaimable));
}

/// Allocates the memory of a part of a segment. Returns 0, or the error number.
int populate(std::byte* base, uint64_t bytes) {
  if (madvise(base, bytes, MADV_POPULATE_WRITE) == 0) return 0;
  if (errno != EINVAL) return errno;
  // Kernels before 5.14 do not know MADV_POPULATE_WRITE, so this touches each page. Other threads
  // may already use the memory, so the access must not change it.
  constexpr uint64_t kStep = 4096;
  for (uint64_t at = 0; at < bytes; at += kStep) {
    auto& byte = reinterpret_cast<uint8_t&>(base[at]);
    std::atomic_ref(byte).fetch_or(0, std::memory_order_relaxed);
  }
  return 0;
}

std::string mib(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

std::string segment_name(SegmentKind kind, uint32_t node) {
  const std::string of_node = "node" + std::to_string(node);
  switch (kind) {
    case SegmentKind::control:
      return "control";
    case SegmentKind::shared:
      return of_node + ".shared";
    case SegmentKind::pool:
      return of_node + ".pool";
    case SegmentKind::local:
      return of_node + ".local";
    case SegmentKind::metrics:
      return of_node + ".metrics";
    case SegmentKind::session:
      return of_node + ".session";
    case SegmentKind::exchange:
      return of_node + ".exchange";
  }
  return of_node + ".unknown";
}

MemoryAvailable MemoryAvailable::detect() {
  MemoryAvailable available;
  available.bytes = read_field("/proc/meminfo", "MemAvailable:", 1024);
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    // Inside a container, the control group of this process is the root of the mount.
    for (const std::string& folder :
         {"/sys/fs/cgroup" + line.substr(3), std::string("/sys/fs/cgroup")}) {
      available.bytes = std::min(available.bytes, group_available(folder));
    }
  }
  const std::string pages = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  available.huge_pages_total = read_number(pages + "nr_hugepages", 0);
  const uint64_t free = read_number(pages + "free_hugepages", 0);
  available.huge_pages = free - std::min(free, read_number(pages + "resv_hugepages", 0));
  available.file_limit_bytes = resource_limit(RLIMIT_FSIZE);
  available.address_limit_bytes = resource_limit(RLIMIT_AS);
  return available;
}

Result<bool> plan_huge_pages(std::span<const uint64_t> sizes, HugePages mode,
                             const MemoryAvailable& available) {
  for (const uint64_t size : sizes) CHECK(size % kSegmentStepBytes == 0);
  const uint64_t total = std::accumulate(sizes.begin(), sizes.end(), uint64_t{0});
  const uint64_t largest = sizes.empty() ? 0 : *std::max_element(sizes.begin(), sizes.end());
  if (largest > available.file_limit_bytes) {
    return make_error(ExitCode::resources, "memory: the largest segment needs " + mib(largest) +
                                               ", but the limit of file sizes (ulimit -f) is " +
                                               mib(available.file_limit_bytes) +
                                               ": raise it, or lower memory.volatile_pool");
  }
  if (total > available.address_limit_bytes) {
    return make_error(ExitCode::resources, "memory: the segments need " + mib(total) +
                                               ", but the limit of address space (ulimit -v) is " +
                                               mib(available.address_limit_bytes) +
                                               ": raise it, or lower memory.volatile_pool");
  }
  const uint64_t needed = total / kSegmentStepBytes;
  const bool fits_huge = needed <= available.huge_pages;
  if (mode == HugePages::require && !fits_huge) {
    const uint64_t missing = needed - available.huge_pages;
    return make_error(
        ExitCode::resources,
        "memory.huge_pages = \"require\": " + std::to_string(missing) +
            " huge pages of 2 MiB are missing (" + std::to_string(needed) + " needed, " +
            std::to_string(available.huge_pages) + " free): run `sudo sysctl -w vm.nr_hugepages=" +
            std::to_string(available.huge_pages_total + missing) + "`, or set \"advise\"");
  }
  if (mode != HugePages::off && fits_huge) return true;
  if (total > available.bytes) {
    return make_error(ExitCode::resources, "memory: the segments need " + mib(total) +
                                               ", but only " + mib(available.bytes) +
                                               " are available: lower memory.volatile_pool or "
                                               "memory.log_buffer, or use fewer nodes or workers");
  }
  return false;
}

Result<UniqueFd> create_segment_file(const std::string& name, uint64_t bytes, bool huge_pages) {
  CHECK(bytes != 0 && (!huge_pages || bytes % kHugePageBytes == 0));
  const unsigned flags = MFD_CLOEXEC | (huge_pages ? MFD_HUGETLB | MFD_HUGE_2MB : 0u);
  UniqueFd fd(memfd_create(("atoll." + name).c_str(), flags));
  if (fd.is_open() && ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0) return fd;
  return make_error(ExitCode::resources, "segment " + name + " of " + mib(bytes) + ": " +
                                             std::strerror(errno) +
                                             ": check memory and `ulimit -n`");
}

Result<void> bind_memory(const std::string& name, std::byte* base, uint64_t bytes,
                         int32_t numa_node) {
  CHECK(base != nullptr && bytes != 0);
  if (numa_node < 0 || numa_available() < 0 || numa_max_node() == 0) return {};
  long long free_bytes = 0;
  numa_node_size64(numa_node, &free_bytes);
  if (free_bytes > 0 && static_cast<uint64_t>(free_bytes) < bytes) {
    return make_error(ExitCode::resources,
                      "segment " + name + ": NUMA node " + std::to_string(numa_node) +
                          " has only " + mib(static_cast<uint64_t>(free_bytes)) + " free of the " +
                          mib(bytes) + " needed: lower memory.volatile_pool or change numa_node");
  }
  numa_tonode_memory(base, bytes, numa_node);
  return {};
}

Result<void> prefault_memory(const std::string& name, std::byte* base, uint64_t bytes,
                             uint32_t threads) {
  CHECK(base != nullptr && reinterpret_cast<uintptr_t>(base) % kPageBytes == 0);
  const uint64_t steps = bytes / kSegmentStepBytes;
  const uint64_t parts = std::clamp<uint64_t>(threads, 1, std::max<uint64_t>(steps, 1));
  std::atomic<int> error{0};
  std::vector<std::thread> workers;
  for (uint64_t part = 0; part < parts; ++part) {
    const uint64_t begin = steps * part / parts * kSegmentStepBytes;
    const uint64_t end = part + 1 == parts ? bytes : steps * (part + 1) / parts * kSegmentStepBytes;
    CHECK(begin <= end && end <= bytes);
    workers.emplace_back([=, &error] {
      const int failed = populate(base + begin, end - begin);
      if (failed != 0) error.store(failed, std::memory_order_relaxed);
    });
  }
  for (std::thread& worker : workers) worker.join();
  const int failed = error.load(std::memory_order_relaxed);
  if (failed == 0) return {};
  return make_error(ExitCode::resources,
                    "segment " + name + ": its " + mib(bytes) +
                        " of memory cannot be allocated: " + std::strerror(failed) +
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
