#include "ops/cli/salvage_report.h"

#include <filesystem>
#include <system_error>

namespace atolldb::cli {

std::string newest_salvage_report(const std::string& data_dir) {
  std::string newest;
  std::filesystem::file_time_type newest_at;
  std::error_code error;
  std::filesystem::directory_iterator entries(data_dir, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename();
    if (!name.starts_with("salvage-") || !name.ends_with(".json")) continue;
    std::error_code is_gone;
    const auto written_at = entries->last_write_time(is_gone);
    if (is_gone || (!newest.empty() && written_at <= newest_at)) continue;
    newest = entries->path();
    newest_at = written_at;
  }
  return newest;
}

}  // namespace atolldb::cli
