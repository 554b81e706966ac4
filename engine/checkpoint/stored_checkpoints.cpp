#include "engine/checkpoint/stored_checkpoints.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "engine/checkpoint/checkpoint_metadata.h"
#include "engine/log/log_files.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"
#include "shared/file/io_buffer.h"

namespace atolldb {
namespace {

/// Adds the files of one directory, if it exists.
Result<void> add_files(FileSystem& file_system, const std::string& directory, uint32_t node,
                       const std::string& path, std::vector<StoredCheckpointFile>& files) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return {};
  ATOLL_ASSIGN(const auto names, file_system.list(path));
  for (const std::string& name : names) {
    const auto parsed = parse_stored_checkpoint_name(name);
    if (!parsed) continue;
    CHECK(parsed->checkpoint != 0);
    files.push_back({path_in(path, name), parsed->checkpoint, node, directory, parsed->kind});
  }
  return {};
}

}  // namespace

std::optional<StoredCheckpointName> parse_stored_checkpoint_name(std::string_view name) {
  using enum StoredCheckpointKind;
  if (const auto parsed = parse_checkpoint_file_name(name); parsed && parsed->checkpoint != 0) {
    return StoredCheckpointName{parsed->checkpoint, records};
  }
  constexpr std::string_view kUnfinished = ".new";
  const bool is_unfinished = name.ends_with(kUnfinished);
  if (is_unfinished) name.remove_suffix(kUnfinished.size());
  const auto id = parse_checkpoint_metadata_name(name);
  if (!id) return std::nullopt;
  return StoredCheckpointName{*id, is_unfinished ? unfinished : metadata};
}

Result<std::vector<StoredCheckpointFile>> checkpoint_files_in(
    FileSystem& file_system, const std::string& data_dir,
    const std::set<std::string>& directories) {
  std::vector<StoredCheckpointFile> files;
  ATOLL_TRY(add_files(file_system, data_dir, kCoordinator, coordinator_directory(data_dir), files));
  std::set<std::string> all = directories;
  all.insert(data_dir);
  for (const StoredCheckpointFile& file : files) {
    if (file.kind != StoredCheckpointKind::metadata) continue;
    const auto metadata = read_checkpoint_metadata(file_system, data_dir, file.checkpoint);
    if (!metadata) continue;  // damage is reported by the code that uses the metadata
    for (const CheckpointFileInfo& info : metadata->files) all.insert(info.directory);
  }
  for (const std::string& directory : all) {
    const auto add = [&](uint32_t node, const std::string& path) {
      return add_files(file_system, directory, node, path, files);
    };
    ATOLL_TRY(for_each_node_folder(file_system, directory, add));
  }
  std::ranges::sort(files, {}, [](const StoredCheckpointFile& file) {
    return std::tuple(file.checkpoint, file.kind, file.node, std::string_view(file.path));
  });
  return files;
}

Result<bool> is_foreign(FileSystem& file_system, const StoredCheckpointFile& stored,
                        const ClusterUuid& own) {
  CHECK(stored.checkpoint != 0 && !stored.path.empty());
  if (stored.kind != StoredCheckpointKind::records) return false;
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(stored.path));
  IoBuffer buffer(kIoBlockBytes);
  static_assert(sizeof(CheckpointBlockHeader) + sizeof(CheckpointFileHeader) <= kIoBlockBytes);
  ATOLL_ASSIGN(const uint64_t count, file->read(0, buffer.bytes()));
  if (count < kIoBlockBytes) return false;
  CheckpointBlockHeader block = {};
  std::memcpy(&block, buffer.bytes().data(), sizeof block);
  if (block.magic != kCheckpointMagic || block.type != CheckpointBlockType::file_header) {
    return false;
  }
  CheckpointFileHeader header = {};
  std::memcpy(&header, buffer.bytes().data() + sizeof block, sizeof header);
  return header.cluster_uuid != own;
}

}  // namespace atolldb
