#include "shared/config/default_run_dir.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "shared/base/check.h"

namespace atolldb {

std::string default_run_dir(const std::string& cluster) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  // The XDG specification ignores relative values.
  const bool is_set = runtime != nullptr && *runtime == '/';
  const std::string root =
      is_set ? std::string(runtime) + "/atoll" : "/tmp/atoll-" + std::to_string(geteuid());
  std::string path = std::filesystem::path(root + "/" + cluster).lexically_normal().string();
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  CHECK(path.starts_with('/'));
  return path;
}

}  // namespace atolldb
