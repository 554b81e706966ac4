#include "engine/recovery/device_reads.h"

#include "engine/hooks/mutants.h"
#include "engine/log/log_files.h"
#include "engine/log/log_owner.h"
#include "engine/recovery/discard_data.h"
#include "shared/base/try.h"

namespace atolldb {

Result<void> forget_cached_state(FileSystem& file_system, const std::string& data_dir) {
  if (mutant(Mutant::read_through_cache)) return {};
  const std::string directory = coordinator_directory(data_dir);
  ATOLL_ASSIGN(auto exists, file_system.exists(directory));
  if (!exists) return {};
  ATOLL_ASSIGN(auto names, file_system.list(directory));
  for (const std::string& name : names) {
    ATOLL_TRY(file_system.forget_cached(path_in(directory, name)));
  }
  return {};
}

Result<void> forget_cached_logs(FileSystem& file_system, const std::set<std::string>& directories) {
  if (mutant(Mutant::read_through_cache)) return {};
  ATOLL_ASSIGN(auto files, log_files_in(file_system, directories));
  for (const LogFilePlace& place : files) {
    ATOLL_TRY(file_system.forget_cached(path_of(place)));
  }
  return {};
}

}  // namespace atolldb
