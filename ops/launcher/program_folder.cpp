#include "ops/launcher/program_folder.h"

#include <filesystem>
#include <system_error>

namespace atolldb {
namespace {

namespace fs = std::filesystem;

/// Path from the folder of installed commands to that of installed programs, for example
/// "../libexec/atoll". It is relative, so an installed tree can be moved.
constexpr const char* kInstalledPrograms = ATOLL_PROGRAMS_FROM_BIN;

}  // namespace

std::string program_folder() {
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error).parent_path();
  const fs::path installed = (own / kInstalledPrograms).lexically_normal();
  const bool is_installed = !fs::exists(own / "atoll-coordinator", error) &&
                            fs::exists(installed / "atoll-coordinator", error);
  return (is_installed ? installed : own).string();
}

}  // namespace atolldb
