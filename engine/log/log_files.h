// Names of the files and directories that hold what is durable:
//
//   data_dir/coordinator/savepoint                     two slots (savepoint.h)
//   data_dir/coordinator/ddl_<ordinal>.atlog           creations and drops of storages (ddl_log.h)
//   <directory>/node<k>/log_<incarnation>_<logger>_<ordinal>.atlog
//
// <directory> is data_dir, or one of the node's `directories`. Ordinals have at least six digits.
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

/// "log_3_0_000012.atlog"
std::string to_string(const LogFileName& name);
/// Nothing if it is not the name of a log file, exactly as to_string writes it.
std::optional<LogFileName> parse_log_file_name(std::string_view name);

/// "node7", and back.
std::string node_directory_name(uint32_t node);
std::optional<uint32_t> parse_node_directory_name(std::string_view name);

/// <directory>/node<k>
std::string node_directory(const std::string& directory, uint32_t node);
/// data_dir/coordinator
std::string coordinator_directory(const std::string& data_dir);
/// A path in `directory`.
std::string path_in(const std::string& directory, std::string_view name);

/// "ddl_000003.atlog", and back.
std::string ddl_file_name(uint32_t ordinal);
std::optional<uint32_t> parse_ddl_file_name(std::string_view name);

}  // namespace atolldb
