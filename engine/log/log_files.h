// Names of the coordinator's files and of log files:
//
//   data_dir/coordinator/savepoint                     two slots (savepoint.h)
//   data_dir/coordinator/ddl_<ordinal>.atlog           creations and drops of storages (ddl_log.h)
//   data_dir/coordinator/epoch_times                   times of epochs (epoch_times.h)
//   <directory>/node<k>/log_<incarnation>_<logger>_<ordinal>.atlog
//
// <directory> is data_dir or one of the node's `directories`. Ordinals have at least six digits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/format/log_block.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

struct LogFileName {
  uint64_t incarnation = 0;
  uint32_t logger = 0;   // number of the logger in its node
  uint32_t ordinal = 0;  // number of the file in the logger's stream

  bool operator==(const LogFileName&) const = default;
};

struct LogFilePlace {
  std::string directory;  // the file is in its subfolder node<k>/
  uint32_t node = 0;
  LogFileName name;
};

/// Returns the name of the file, for example "log_3_0_000012.atlog".
std::string to_string(const LogFileName& name);
/// Returns nothing if `name` is not exactly the name that to_string writes for a log file.
std::optional<LogFileName> parse_log_file_name(std::string_view name);

/// Convert a node to the name of its folder, for example "node7", and back.
std::string node_directory_name(uint32_t node);
std::optional<uint32_t> parse_node_directory_name(std::string_view name);

/// Returns "<directory>/node<k>".
std::string node_directory(const std::string& directory, uint32_t node);
/// Returns "data_dir/coordinator".
std::string coordinator_directory(const std::string& data_dir);
/// Returns the path of `name` in `directory`.
std::string path_in(const std::string& directory, std::string_view name);

/// Convert an ordinal to the name of a DDL file, for example "ddl_000003.atlog", and back.
std::string ddl_file_name(uint32_t ordinal);
std::optional<uint32_t> parse_ddl_file_name(std::string_view name);

/// Returns "<directory>/node<k>/log_...".
std::string path_of(const LogFilePlace& place);

/// Fields of a log file's header.
struct LogFileBegin {
  ClusterUuid cluster_uuid = {};
  uint64_t closed_epoch = 0;       // the last epoch that the previous file closed
  uint64_t last_epoch_before = 0;  // the last epoch of any block of the previous files
};

/// Returns the header's fields, or nothing if the header is damaged or belongs to another file.
Result<std::optional<LogFileBegin>> begin_of(FileSystem& file_system, const LogFilePlace& place);

/// Returns the cluster that the header names, or nothing if the header is damaged or belongs to
/// another file.
Result<std::optional<ClusterUuid>> owner_of(FileSystem& file_system, const LogFilePlace& place);

/// Returns true if the file's header is intact and names another cluster.
Result<bool> is_foreign(FileSystem& file_system, const LogFilePlace& place, const ClusterUuid& own);

/// Calls `visit(node, path)` for each folder node<k>/ of the directory. A missing directory has no
/// folders. Ends with the first error that `visit` returns.
Result<void> for_each_node_folder(
    FileSystem& file_system, const std::string& directory,
    const std::function<Result<void>(uint32_t node, const std::string& path)>& visit);

/// Returns all log files of the directories, in the order of incarnation, node, logger and ordinal.
/// A missing directory has no files.
Result<std::vector<LogFilePlace>> log_files_in(FileSystem& file_system,
                                               const std::set<std::string>& directories);

}  // namespace atolldb
