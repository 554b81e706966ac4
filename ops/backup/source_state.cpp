#include "ops/backup/source_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/log/log_scan.h"
#include "engine/recovery/discard_data.h"
#include "engine/recovery/salvage.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns whether the cluster keeps the snapshot and the log after it. It does so for the newest
/// snapshot, for kept ones (R55), and for those that a backup has pinned (R65).
bool keeps_log_after(const Savepoint& savepoint, uint32_t id) {
  const auto is_pin = [&](const PinnedSnapshot& pin) { return pin.is_of_backup() && pin.id == id; };
  return id == savepoint.snapshot || std::ranges::any_of(savepoint.pinned, is_pin) ||
         std::ranges::find(savepoint.kept, id, &KeptSnapshot::id) != savepoint.kept.end();
}

}  // namespace

Result<void> refuse_unfinished(FileSystem& file_system, const std::string& data_dir) {
  ATOLL_TRY(refuse_unfinished_discard(file_system, data_dir));
  ATOLL_ASSIGN(const auto salvage, find_salvage(file_system, data_dir));
  if (!salvage) return {};
  return make_error(ExitCode::failed,
                    fmt::format("{}: a salvage is in progress: start the cluster with `atoll up "
                                "--salvage` first, which ends it",
                                data_dir));
}

Result<void> refuse_unkept(const Savepoint& savepoint, const std::string& data_dir, uint32_t id) {
  if (id == 0 || keeps_log_after(savepoint, id)) return {};
  return make_error(
      ExitCode::failed,
      fmt::format("{}: {} {} and the log after it are not kept any more: the "
                  "cluster gave up the pin to make room: try again",
                  savepoint_path(data_dir),
                  savepoint.scheme == DurabilityScheme::silor ? "checkpoint" : "snapshot", id));
}

Result<uint64_t> durable_epoch_of(FileSystem& file_system, const Savepoint& savepoint,
                                  const Incarnation& incarnation,
                                  std::optional<uint64_t> live_epoch) {
  CHECK(incarnation.start_epoch != 0);
  if (incarnation.cut_epoch) return *incarnation.cut_epoch;
  if (live_epoch) return std::max(incarnation.start_epoch - 1, *live_epoch);
  ATOLL_ASSIGN(const auto scan,
               scan_incarnation(file_system, savepoint, incarnation, CoveredBlocks::skip));
  if (scan.corruption) return std::unexpected(scan.corruption_error());
  return scan.cut_epoch;
}

}  // namespace atolldb
