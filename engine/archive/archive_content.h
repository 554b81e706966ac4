// Reads the records of an archive, for restores and for a coordinator without an archive state.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/archive/archive_format.h"
#include "shared/base/error.h"
#include "shared/file/file.h"

namespace atolldb {

/// Content of the records of an archive. The log files that it names may have been removed since.
struct ArchiveContent {
  ArchiveIdentity identity;
  uint64_t records = 0;                                  // number of the last record that is used
  std::map<uint64_t, ArchivedIncarnation> incarnations;  // by number
  std::map<std::string, ArchivedFile> files;             // by name in the archive
  std::vector<DdlRecord> ddl;                            // DDL records of the used records
  std::vector<EpochTime> times;                          // in ascending order of epochs
  std::string damage;  // why records after number `records` are not used; empty: all are used
};

/// Returns the identity of the archive in `directory`, or nothing if there is none. Returns code
/// failed if the directory is missing, and code corruption if the identity is damaged.
Result<std::optional<ArchiveIdentity>> read_archive_identity(FileSystem& file_system,
                                                             const std::string& directory);

/// Calls `visit` for each record, in order, up to the first missing or damaged one. Returns why it
/// stopped there, or an empty text if it has visited all records.
Result<std::string> for_each_archive_record(FileSystem& file_system, const std::string& directory,
                                            const ArchiveIdentity& identity,
                                            const std::function<void(const ArchiveRecord&)>& visit);

/// Reads all records. Returns code failed if the directory holds no archive.
Result<ArchiveContent> read_archive(FileSystem& file_system, const std::string& directory);

}  // namespace atolldb
