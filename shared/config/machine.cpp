#include "shared/config/machine.h"

#include <numa.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {
namespace {

std::vector<int32_t> detect_cpus() {
  std::vector<int32_t> cpus;
  const auto free_set = [](cpu_set_t* set) { CPU_FREE(set); };
  const std::unique_ptr<cpu_set_t, decltype(free_set)> set(CPU_ALLOC(kMaxCpus), free_set);
  const size_t bytes = CPU_ALLOC_SIZE(kMaxCpus);
  if (set && sched_getaffinity(0, bytes, set.get()) == 0) {
    for (int32_t cpu = 0; cpu < kMaxCpus; ++cpu) {
      if (CPU_ISSET_S(static_cast<size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<int32_t> detect_numa_nodes() {
  std::vector<int32_t> nodes;
  if (numa_available() >= 0) {
    bitmask* allowed = numa_get_mems_allowed();
    for (int node = 0; node <= numa_max_node(); ++node) {
      if (numa_bitmask_isbitset(allowed, static_cast<unsigned>(node))) nodes.push_back(node);
    }
    numa_bitmask_free(allowed);
  }
  if (nodes.empty()) nodes.push_back(0);
  return nodes;
}

/// Returns the limit in `path`, or `none` if the file does not exist or contains "max".
uint64_t read_limit(const std::string& path, uint64_t none) {
  std::ifstream file(path);
  uint64_t limit = 0;
  return file >> limit ? limit : none;
}

uint64_t detect_memory_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES);
  const long page_bytes = sysconf(_SC_PAGE_SIZE);
  CHECK(pages > 0 && page_bytes > 0);
  uint64_t bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page_bytes);
  // Inside a container, the root of the cgroup mount is the control group of this process. On a
  // host, /proc/self/cgroup names the path of the group.
  bytes = std::min(bytes, read_limit("/sys/fs/cgroup/memory.max", bytes));
  bytes = std::min(bytes, read_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes", bytes));
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    bytes = std::min(bytes, read_limit("/sys/fs/cgroup" + line.substr(3) + "/memory.max", bytes));
  }
  return bytes;
}

/// Returns the lowest quota of this process's control group and of the groups above it.
double detect_cpu_quota() {
  double lowest = 0;
  const auto add = [&](const std::string& folder) {
    std::ifstream file(folder + "/cpu.max");
    std::string line;
    std::getline(file, line);  // no text if the file is missing or cannot be read
    const double quota = parse_cpu_max(line);
    if (quota > 0 && (lowest == 0 || quota < lowest)) lowest = quota;
  };
  const std::string root = "/sys/fs/cgroup";
  add(root);  // inside a container, the root is the group of this process
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::/")) continue;
    for (std::string group = line.substr(3); group.size() > 1;) {
      add(root + group);
      const size_t slash = group.rfind('/');
      CHECK(slash < group.size());
      group.resize(slash);
    }
  }
  return lowest;
}

}  // namespace

double parse_cpu_max(const std::string& text) {
  // Format of cpu.max: "<microseconds, or max> <period in microseconds>" (cgroup-v2.rst of Linux).
  std::istringstream fields(text);
  double quota_us = 0;
  double period_us = 0;
  if (!(fields >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return 0;
  return quota_us / period_us;
}

Machine Machine::detect() {
  Machine machine;
  machine.numa_nodes = detect_numa_nodes();
  machine.cpus = detect_cpus();
  machine.memory_bytes = detect_memory_bytes();
  machine.cpu_quota = detect_cpu_quota();
  CHECK(!machine.cpus.empty() && std::ranges::is_sorted(machine.cpus));
  CHECK(!machine.numa_nodes.empty() && std::ranges::is_sorted(machine.numa_nodes));
  return machine;
}

bool Machine::has_cpu(int32_t cpu) const {
  DCHECK(std::ranges::is_sorted(cpus));
  return std::ranges::binary_search(cpus, cpu);
}

uint32_t Machine::usable_cpus() const {
  auto usable = static_cast<double>(cpus.size());
  if (has_cpu_quota()) usable = std::min(usable, std::ceil(cpu_quota));
  CHECK(usable >= 1);
  return static_cast<uint32_t>(usable);
}

bool Machine::has_cpu_quota() const {
  CHECK(cpu_quota >= 0 && !cpus.empty());
  return cpu_quota > 0 && cpu_quota < static_cast<double>(cpus.size());
}

bool Machine::has_numa_node(int32_t node) const {
  DCHECK(std::ranges::is_sorted(numa_nodes));
  return std::ranges::binary_search(numa_nodes, node);
}

}  // namespace atolldb
