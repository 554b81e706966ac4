// Settings of the kernel that help or hinder a cluster, for `atoll doctor`.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

namespace atolldb::cli {

/// What was found about one setting of this machine.
struct Finding {
  bool is_good = true;
  std::string what;
  std::string found;
  std::string advice{};  // only if it is not good
  std::string sysctl{};  // assignment of sysctl that follows the advice; may be empty
};

/// Reads the settings below `root`/proc/sys and `root`/sys. A setting that this kernel does not
/// have is left out. `numa_nodes`: number of NUMA nodes of the machine.
std::vector<Finding> kernel_findings(const std::filesystem::path& root, size_t numa_nodes);

/// Returns a command that makes the kernel set the advised values at each boot, or an empty text if
/// no finding has one.
std::string boot_command(const std::vector<Finding>& findings);

}  // namespace atolldb::cli
