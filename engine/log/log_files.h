// Names of the coordinator's files and of log files:
//
//   data_dir/coordinator/savepoint                     two slots (savepoint.h)
//   data_dir/coordinator/ddl_<ordinal>.atlog           creations and drops of storages (ddl_log.h)
//   <directory>/node<k>/log_<incarnation>_<logger>_<ordinal>.atlog
//
// <directory> is data_dir or one of the node's `directories`. Ordinals have at least six digits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace atolldb {

struct LogFileName {
  uint64_t incarnation = 0;
  uint32_t logger = 0;   // within the node
  uint32_t ordinal = 0;  // within the logger's stream

  bool operator==(const LogFileName&) const = default;
};

struct LogFilePlace {
  std::string directory;  // its node<k>/ holds the file
  uint32_t node = 0;
  LogFileName name;
};

/// "log_3_0_000012.atlog"
std::string to_string(const LogFileName& name);
/// Returns nothing if `name` is not exactly the name that to_string writes for a log file.
std::optional<LogFileName> parse_log_file_name(std::string_view name);

/// "node7", and its inverse.
std::string node_directory_name(uint32_t node);
std::optional<uint32_t> parse_node_directory_name(std::string_view name);

/// <directory>/node<k>
std::string node_directory(const std::string& directory, uint32_t node);
/// data_dir/coordinator
std::string coordinator_directory(const std::string& data_dir);
/// The path of `name` in `directory`.
std::string path_in(const std::string& directory, std::string_view name);

/// "ddl_000003.atlog", and its inverse.
std::string ddl_file_name(uint32_t ordinal);
std::optional<uint32_t> parse_ddl_file_name(std::string_view name);

}  // namespace atolldb
