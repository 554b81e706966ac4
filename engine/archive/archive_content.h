// Reads an archive, for restores and for a coordinator without a state.
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

/// What the records of an archive say. The log files may have been removed since.
struct ArchiveContent {
  ArchiveIdentity identity;
  uint64_t records = 0;                                  // number of the last one
  std::map<uint64_t, ArchivedIncarnation> incarnations;  // by number
  std::map<std::string, ArchivedFile> files;             // by name
  std::vector<DdlRecord> ddl;                            // all of the cluster
  std::vector<EpochTime> times;                          // ascending
  std::string damage;  // why later records are not used; empty: all are
};

/// Returns nothing if the directory has no identity. Returns code failed if the directory is
/// missing, and code corruption if the identity is damaged.
Result<std::optional<ArchiveIdentity>> read_archive_identity(FileSystem& file_system,
                                                             const std::string& directory);

/// Calls `visit` for each record, in order, up to the first missing or damaged one. Returns the
/// reason why it ended there, or an empty text if it was after the last record.
Result<std::string> for_each_archive_record(FileSystem& file_system, const std::string& directory,
                                            const ArchiveIdentity& identity,
                                            const std::function<void(const ArchiveRecord&)>& visit);

/// Returns code failed if the directory holds no archive.
Result<ArchiveContent> read_archive(FileSystem& file_system, const std::string& directory);

}  // namespace atolldb
