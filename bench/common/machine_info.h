// The machine that a figure was measured on: printed beside every figure.
#pragma once

#include <cstdint>
#include <string>

namespace atolldb::bench {

struct MachineInfo {
  std::string cpu;
  uint32_t cores = 0;  // this process may run on
  uint64_t memory_bytes = 0;
  std::string kernel;

  static MachineInfo detect();
  /// `pool_page_bytes`: the pages that really map the pools (0: not known).
  std::string line(uint32_t pool_page_bytes) const;
};

/// "1.5 GiB"
std::string format_bytes(uint64_t bytes);
/// "1,234,567"
std::string format_count(uint64_t count);

}  // namespace atolldb::bench
