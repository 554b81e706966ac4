// Resources of the machine. Tests pass their own machines to the config.
#pragma once

#include <cstdint>
#include <vector>

namespace atolldb {

struct Machine {
  std::vector<int32_t> numa_nodes{0};  ///< ids of the nodes this process may allocate on, ascending
  std::vector<int32_t> cpus{0};        ///< ids of the CPUs this process may run on, ascending
  uint64_t memory_bytes = 0;           ///< physical memory, or the control group's limit if lower

  static Machine detect();

  bool has_cpu(int32_t cpu) const;
  bool has_numa_node(int32_t node) const;
};

}  // namespace atolldb
