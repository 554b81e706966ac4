#include "ops/cli/kernel_settings.h"

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <system_error>
#include <utility>

namespace atolldb::cli {
namespace {

namespace fs = std::filesystem;

/// The kernel's default. Each process maps each segment once, and each file of pages and each
/// thread's stack: far fewer, unless the limit was lowered.
constexpr int64_t kEnoughMappings = 65'530;
/// With the kernel's default of 60, page pools that are not used for a while are swapped out.
constexpr int64_t kLittleSwapping = 10;

std::string first_line_of(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// A setting of the kernel that is a number, and the value that suits a cluster.
struct NumberSetting {
  const char* name;  // "vm.swappiness"
  bool (*is_good)(int64_t value);
  const char* better;  // the value to set
  const char* why;     // the effect of the present value
};

constexpr NumberSetting kKernelSettings[] = {
    {"vm.max_map_count", [](int64_t value) { return value >= kEnoughMappings; }, "65530",
     "a process with many threads or files of pages may not be able to map memory"},
    {"vm.overcommit_memory", [](int64_t value) { return value != 2; }, "0",
     "whole page pools count as used memory, so a cluster may not start"},
    {"vm.swappiness", [](int64_t value) { return value <= kLittleSwapping; }, "1",
     "the kernel may swap out pages of the pools, and each access then waits for the disk"},
    {"kernel.io_uring_disabled", [](int64_t value) { return value == 0; }, "0",
     "cold reads cannot overlap, so they wait for the device one after another"},
};

/// Settings that matter only with several NUMA nodes.
constexpr NumberSetting kNumaSettings[] = {
    {"kernel.numa_balancing", [](int64_t value) { return value == 0; }, "0",
     "the kernel unmaps pages to find their users, although Atoll places memory itself"},
    {"vm.zone_reclaim_mode", [](int64_t value) { return value == 0; }, "0",
     "a node frees its file cache before it uses memory of another node"},
};

std::optional<int64_t> number_in(const std::string& text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || end == text.c_str()) return std::nullopt;
  return value;
}

void examine(const fs::path& root, const NumberSetting& setting, std::vector<Finding>& findings) {
  std::string path = setting.name;
  for (char& letter : path) letter = letter == '.' ? '/' : letter;
  const auto value = number_in(first_line_of(root / "proc/sys" / path));
  if (!value) return;
  Finding finding{setting.is_good(*value), setting.name, std::to_string(*value)};
  if (!finding.is_good) {
    finding.sysctl = std::string(setting.name) + "=" + setting.better;
    finding.advice = std::string(setting.why) + ": run as root: sysctl -w " + finding.sysctl;
  }
  findings.push_back(std::move(finding));
}

bool has_swap(const fs::path& root) {
  std::ifstream file(root / "proc/swaps");
  std::string line;
  std::getline(file, line);  // the header
  return static_cast<bool>(std::getline(file, line));
}

/// Names the frequency governors of the CPUs, with the number of CPUs of each.
void examine_governors(const fs::path& root, std::vector<Finding>& findings) {
  std::map<std::string, size_t> governors;
  std::error_code error;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(root / "sys/devices/system/cpu/cpufreq", error)) {
    const std::string governor = first_line_of(entry.path() / "scaling_governor");
    if (!governor.empty()) ++governors[governor];
  }
  if (governors.empty()) return;  // a virtual machine, whose host decides
  std::string found;
  for (const auto& [governor, count] : governors) {
    found += (found.empty() ? "" : ", ") + governor + " (" + std::to_string(count) + ")";
  }
  const bool is_good = governors.size() == 1 && governors.contains("performance");
  findings.push_back({is_good, "CPU governor", found,
                      "CPUs that slow down between requests make commits later: run as root: "
                      "cpupower frequency-set -g performance"});
}

/// Transparent huge pages of private memory: heaps and stacks. Those of segments are
/// `shmem_enabled`, which `atoll doctor` examines with the memory.
void examine_huge_pages(const fs::path& root, std::vector<Finding>& findings) {
  const std::string enabled = first_line_of(root / "sys/kernel/mm/transparent_hugepage/enabled");
  if (enabled.empty()) return;
  findings.push_back({!enabled.contains("[never]"), "huge pages (private)", enabled,
                      "buffers of workers and gleaners use small pages: run as root: echo madvise "
                      "> /sys/kernel/mm/transparent_hugepage/enabled"});
}

}  // namespace

std::vector<Finding> kernel_findings(const fs::path& root, size_t numa_nodes) {
  std::vector<Finding> findings;
  examine_huge_pages(root, findings);
  for (const NumberSetting& setting : kKernelSettings) {
    if (std::string(setting.name) == "vm.swappiness" && !has_swap(root)) continue;
    examine(root, setting, findings);
  }
  if (numa_nodes > 1) {
    for (const NumberSetting& setting : kNumaSettings) examine(root, setting, findings);
  }
  examine_governors(root, findings);
  return findings;
}

std::string boot_command(const std::vector<Finding>& findings) {
  std::string assignments;
  for (const Finding& finding : findings) {
    if (!finding.sysctl.empty()) assignments += " " + finding.sysctl;
  }
  if (assignments.empty()) return "";
  return "printf '%s\\n'" + assignments + " > /etc/sysctl.d/60-atoll.conf";
}

}  // namespace atolldb::cli
