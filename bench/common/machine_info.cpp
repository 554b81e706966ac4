#include "bench/common/machine_info.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <fstream>

#include "shared/config/machine.h"

namespace atolldb::bench {

namespace {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("model name")) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

}  // namespace

MachineInfo MachineInfo::detect() {
  const Machine machine = Machine::detect();
  MachineInfo info;
  info.cpu = cpu_model();
  info.cores = static_cast<uint32_t>(machine.cpus.size());
  info.memory_bytes = machine.memory_bytes;
  utsname name{};
  if (uname(&name) == 0) info.kernel = fmt::format("{} {}", name.sysname, name.release);
  return info;
}

std::string MachineInfo::line(uint32_t pool_page_bytes) const {
  std::string pages = "unknown";
  if (pool_page_bytes != 0) pages = format_bytes(pool_page_bytes);
  return fmt::format("{}, {} cores, {} memory, {}, pools mapped in {} pages", cpu, cores,
                     format_bytes(memory_bytes), kernel, pages);
}

std::string format_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  const bool whole = value >= 100 || value == static_cast<double>(static_cast<int64_t>(value));
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit])
               : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string format_count(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t at = digits.size(); at > 3;) {
    at -= 3;
    digits.insert(at, ",");
  }
  return digits;
}

}  // namespace atolldb::bench
