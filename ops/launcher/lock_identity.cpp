#include "ops/launcher/lock_identity.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace atolldb {

nlohmann::json lock_identity(const struct stat& file) {
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string boot_id;
  boot >> boot_id;
  std::error_code unknown;
  return {{"boot_id", boot_id},
          {"pid_namespace", std::filesystem::read_symlink("/proc/self/ns/pid", unknown).string()},
          {"device", static_cast<uint64_t>(file.st_dev)},
          {"inode", static_cast<uint64_t>(file.st_ino)}};
}

bool is_of_this_file(const nlohmann::json& content, const struct stat& file) {
  return content.is_object() && content.contains("identity") &&
         content["identity"] == lock_identity(file);
}

}  // namespace atolldb
