#include "ops/launcher/data_lock.h"

#include <filesystem>
#include <utility>

#include "shared/process/run_paths.h"

namespace atolldb {

Result<std::optional<ProcessLock>> lock_data(const Config& config) {
  if (config.durability.mode != DurabilityMode::durable) return std::nullopt;
  std::error_code error;
  std::filesystem::create_directories(config.cluster.data_dir, error);
  if (error) {
    return make_error(ExitCode::failed, config.cluster.data_dir +
                                            ": cannot be made: " + error.message() +
                                            ": change cluster.data_dir in the config");
  }
  Result<ProcessLock> lock =
      ProcessLock::acquire(data_lock_path(config), config.cluster.name, "cluster.data_dir");
  if (!lock) return std::unexpected(lock.error());
  return *std::move(lock);
}

}  // namespace atolldb
