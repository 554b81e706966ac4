#include "ops/cli/left_pins.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/log/savepoint.h"
#include "ops/backup/backup_folder.h"
#include "ops/backup/backup_time.h"
#include "shared/base/check.h"

namespace atolldb::cli {
namespace {

/// Returns the seconds since the backup with this pin began, or null. The id of a backup may be in
/// the future, because ids ascend although the clock is set back.
Json age_of_pin(std::string_view name, uint64_t unix_ms) {
  if (!name.starts_with(kBackupPinPrefix)) return {};
  const auto begun = unix_ms_of_id(name.substr(kBackupPinPrefix.size(), kBackupIdBytes));
  if (!begun) return {};
  return (unix_ms - std::min(unix_ms, *begun)) / 1000;
}

}  // namespace

bool may_back_up(const Config& config) {
  const auto taken = FolderLock::is_taken(backup_lock_path(config.cluster.data_dir));
  return !taken || *taken;
}

void add_left_pins(Json& status, bool backup_runs, uint64_t unix_ms) {
  CHECK(status.is_object());
  const char* member = status.contains("checkpoints") ? "checkpoints" : "snapshots";
  if (!status.contains(member) || !status[member].is_object()) return;
  Json& snapshots = status[member];
  Json left = Json::array();
  const Json pins = backup_runs ? Json::array() : snapshots.value("backup_pins", Json::array());
  for (const Json& pin : pins) {
    const std::string name = pin.value("name", "");
    left.push_back(
        {{"id", pin.value("id", 0u)}, {"name", name}, {"age_s", age_of_pin(name, unix_ms)}});
  }
  snapshots["left_pins"] = std::move(left);
}

}  // namespace atolldb::cli
