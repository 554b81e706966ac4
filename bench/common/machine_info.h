// Describes the machine. Every benchmark report prints the description.
#pragma once

#include <cstdint>
#include <string>

namespace atolldb::bench {

struct MachineInfo {
  std::string cpu;
  uint32_t cores = 0;  // number of cores that this process may run on
  uint64_t memory_bytes = 0;
  std::string kernel;

  static MachineInfo detect();
  /// `pool_page_bytes`: the size of the pages that map the pools (0: unknown).
  std::string line(uint32_t pool_page_bytes) const;
};

/// Returns "1.5 GiB" for example.
std::string format_bytes(uint64_t bytes);
/// Returns "1,234,567" for example.
std::string format_count(uint64_t count);

}  // namespace atolldb::bench
