#include "engine/recovery/device_reads.h"

#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/log_owner.h"
#include "engine/recovery/discard_data.h"

namespace atolldb {

Result<void> forget_cached_state(FileSystem& file_system, const std::string& data_dir) {
  if (mutant(Mutant::read_through_cache)) return {};
  const std::string directory = coordinator_directory(data_dir);
  auto exists = file_system.exists(directory);
  if (!exists) return std::unexpected(exists.error());
  if (!*exists) return {};
  auto names = file_system.list(directory);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    auto forgotten = file_system.forget_cached(path_in(directory, name));
    if (!forgotten) return forgotten;
  }
  return {};
}

Result<void> forget_cached_logs(FileSystem& file_system, const std::set<std::string>& directories) {
  if (mutant(Mutant::read_through_cache)) return {};
  auto files = log_files_in(file_system, directories);
  if (!files) return std::unexpected(files.error());
  for (const LogFilePlace& place : *files) {
    auto forgotten = file_system.forget_cached(path_of(place));
    if (!forgotten) return forgotten;
  }
  return {};
}

}  // namespace atolldb
