#include "engine/snapshot/stored_snapshots.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <tuple>
#include <utility>

#include "engine/format/snapshot_format.h"
#include "engine/log/log_files.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/snapshot_metadata.h"
#include "shared/base/limits.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Adds the snapshot files of one directory, if it exists.
Result<void> add_files(FileSystem& file_system, const std::string& directory, uint32_t node,
                       const std::string& path, std::vector<StoredSnapshotFile>& files) {
  ATOLL_ASSIGN(const bool exists, file_system.exists(path));
  if (!exists) return {};
  ATOLL_ASSIGN(auto names, file_system.list(path));
  for (const std::string& name : names) {
    const auto parsed = parse_snapshot_file_name(name);
    if (!parsed) continue;
    files.push_back({path_in(path, name), parsed->snapshot, node, directory, parsed->kind});
  }
  return {};
}

}  // namespace

std::optional<SnapshotFileName> parse_snapshot_file_name(std::string_view name) {
  constexpr std::string_view kPrefix = "snapshot_";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  SnapshotFileName parsed;
  const char* begin = name.data() + kPrefix.size();
  const auto [end, problem] = std::from_chars(begin, name.data() + name.size(), parsed.snapshot);
  if (problem != std::errc{}) return std::nullopt;
  const std::string metadata = snapshot_metadata_path("", parsed.snapshot);
  const std::string_view metadata_name = std::string_view(metadata).substr(metadata.rfind('/') + 1);
  if (name == snapshot_file_name(parsed.snapshot)) {
    parsed.kind = StoredSnapshotKind::pages;
  } else if (name == metadata_name) {
    parsed.kind = StoredSnapshotKind::metadata;
  } else if (name == std::string(metadata_name) + ".new") {
    parsed.kind = StoredSnapshotKind::unfinished;
  } else {
    return std::nullopt;
  }
  return parsed;
}

Result<std::vector<StoredSnapshotFile>> snapshot_files_in(
    FileSystem& file_system, const std::string& data_dir,
    const std::set<std::string>& directories) {
  std::vector<StoredSnapshotFile> files;
  ATOLL_TRY(add_files(file_system, data_dir, kCoordinator, coordinator_directory(data_dir), files));
  std::set<std::string> all = directories;
  for (const StoredSnapshotFile& file : files) {
    if (file.kind != StoredSnapshotKind::metadata) continue;
    const auto metadata = read_snapshot_metadata(file_system, data_dir, file.snapshot);
    if (!metadata) continue;  // damage is reported by the code that uses the metadata
    for (const SnapshotFilePlace& place : metadata->files) all.insert(place.directory);
  }
  for (const std::string& directory : all) {
    const auto add = [&](uint32_t node, const std::string& path) {
      return add_files(file_system, directory, node, path, files);
    };
    ATOLL_TRY(for_each_node_folder(file_system, directory, add));
  }
  std::ranges::sort(files, {}, [](const StoredSnapshotFile& file) {
    return std::tuple(file.snapshot, file.node, std::string_view(file.directory), file.kind);
  });
  return files;
}

Result<bool> is_foreign(FileSystem& file_system, const StoredSnapshotFile& stored,
                        const ClusterUuid& own) {
  if (stored.kind != StoredSnapshotKind::pages) return false;
  ATOLL_ASSIGN(auto file, file_system.open_for_reading(stored.path));
  SnapshotFileHeader header = {};
  ATOLL_ASSIGN(const uint64_t count, file->read(0, std::as_writable_bytes(std::span(&header, 1))));
  if (count < sizeof header || header.magic != kSnapshotFileMagic) return false;
  return !std::ranges::equal(header.cluster_uuid, own);
}

}  // namespace atolldb
