// Resources of the machine. Tests pass their own machines to the config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atolldb {

struct Machine {
  std::vector<int32_t> numa_nodes{0};  ///< ids of the nodes this process may allocate on, ascending
  std::vector<int32_t> cpus{0};        ///< ids of the CPUs this process may run on, ascending
  uint64_t memory_bytes = 0;           ///< physical memory, or the control group's limit if lower
  double cpu_quota = 0;  ///< number of CPUs that the control groups (v2) allow; 0: no limit

  static Machine detect();

  bool has_cpu(int32_t cpu) const;
  bool has_numa_node(int32_t node) const;
  /// Returns whether the control groups allow less CPU time than all CPUs have.
  bool has_cpu_quota() const;
  /// Returns how many threads can compute at the same time, at least 1: one for each CPU, and no
  /// more than the quota allows.
  uint32_t usable_cpus() const;
};

/// Returns the number of CPUs that the text of a file cpu.max allows, for example 1.5 for "150000
/// 100000". Returns 0 if the text sets no limit.
double parse_cpu_max(const std::string& text);

}  // namespace atolldb
