#include "engine/recovery/checkpoint_start.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/checkpoint/checkpoint_file.h"
#include "engine/checkpoint/checkpoint_reader.h"
#include "engine/hooks/mutants.h"
#include "engine/recovery/uncreated_storages.h"
#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Returns an error if the metadata is not that of the checkpoint that the savepoint names.
Result<void> refuse_other_checkpoint(const CheckpointMetadata& metadata, const Savepoint& savepoint,
                                     const std::string& path) {
  const bool is_foreign = metadata.cluster_uuid != savepoint.cluster_uuid;
  const uint64_t replay_epoch = savepoint.snapshot_epoch + 1;
  if (!is_foreign && metadata.replay_epoch == replay_epoch) return {};
  return make_error(
      ExitCode::corruption,
      fmt::format("{}: is of {}, but the savepoint names checkpoint {} with replay epoch {}: "
                  "restore a backup, or start empty with `atoll up --discard-data`",
                  path,
                  is_foreign
                      ? "another cluster"
                      : fmt::format("a checkpoint with replay epoch {}", metadata.replay_epoch),
                  savepoint.snapshot, replay_epoch));
}

}  // namespace

Result<void> choose_scheme(LogStart& start, const std::string& data_dir,
                           DurabilityScheme configured) {
  CHECK(configured <= kLastDurabilityScheme);
  DurabilityScheme& scheme = start.savepoint.scheme;
  if (start.is_new) scheme = configured;
  if (scheme == configured || fault::mix_schemes) return {};
  // An export reads a snapshot, so checkpoints cannot be exported.
  const char* const move = scheme == DurabilityScheme::gleaned
                               ? ", or move the data to a new cluster with `atoll export` and "
                                 "`atoll import`"
                               : "";
  return make_error(
      ExitCode::failed,
      fmt::format("{}: its data has the durability scheme {}, but the config has "
                  "durability.scheme = \"{}\": set durability.scheme = \"{}\"{}, or start empty "
                  "with `atoll up --discard-data`",
                  data_dir, to_string(scheme), to_string(configured), to_string(scheme), move));
}

Result<void> examine_checkpoint(FileSystem& file_system, const std::string& data_dir,
                                LogStart& start, const RunTasks& run) {
  const Savepoint& savepoint = start.savepoint;
  CHECK(savepoint.scheme == DurabilityScheme::silor && savepoint.snapshot != 0);
  CHECK(savepoint.kept.empty());
  ATOLL_ASSIGN(auto metadata, read_checkpoint_metadata(file_system, data_dir, savepoint.snapshot));
  const std::string path = checkpoint_metadata_path(data_dir, savepoint.snapshot);
  ATOLL_TRY(refuse_other_checkpoint(metadata, savepoint, path));
  ATOLL_TRY(refuse_uncreated_storages(metadata.storages, start.ddl, path));
  const auto check_file = [&](size_t file) -> Result<void> {
    const CheckpointFileInfo& info = metadata.files[file];
    const CheckpointFileName name = {metadata.id, info.writer, info.number};
    const std::string file_path = checkpoint_file_path(info.directory, info.node, name);
    ATOLL_ASSIGN(const bool exists, file_system.exists(file_path));
    if (exists && !fault::read_through_cache) {
      ATOLL_TRY(file_system.forget_cached(file_path));  // R53
    }
    ATOLL_ASSIGN(const auto reader, CheckpointReader::open(file_system, metadata, file));
    CHECK(reader.bytes() <= info.bytes);
    return {};
  };
  ATOLL_TRY(try_tasks(run, metadata.files.size(), check_file));
  start.checkpoint = std::move(metadata);
  return {};
}

Result<void> refuse_cut_before_end(const LogStart& start, const std::string& data_dir) {
  CHECK(start.savepoint.uncut() == nullptr);
  if (!start.checkpoint) return {};
  const uint64_t end_epoch = start.checkpoint->end_epoch;
  // The last incarnation that began up to the end epoch has that epoch. If it is not listed, a
  // recovery needs no log up to its cut.
  const Incarnation* holder = nullptr;
  for (const Incarnation& incarnation : start.savepoint.incarnations) {
    if (incarnation.start_epoch <= end_epoch) holder = &incarnation;
  }
  if (holder == nullptr || *holder->cut_epoch >= end_epoch) return {};
  return make_error(
      ExitCode::corruption,
      fmt::format("{}: checkpoint {} needs the log up to epoch {}, but the log of incarnation {} "
                  "is intact only up to epoch {}: restore a backup, or start empty with `atoll up "
                  "--discard-data`",
                  checkpoint_metadata_path(data_dir, start.checkpoint->id), start.checkpoint->id,
                  end_epoch, holder->number, *holder->cut_epoch));
}

}  // namespace atolldb
