// Format of an archive: copies of closed log files, and records that say what they are. With a
// backup that is older, an archive restores the state at any epoch that it reaches (README.md).
//
//   identity.json             names the data; stored first
//   node<k>/log_...           closed log files, under the names that they had in the cluster
//   records/00000001.json     one record per stored log file, stored after it; numbers ascend
//
// No file ever changes. All JSON files have the form
//   {"format": "atoll-archive", "version": 1, "kind": ..., "crc32c": "<8 digits>", "body": {...}}
// crc32c: CRC32C of the member `body` as compact JSON with sorted members. Blanks may follow.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/log/ddl_log.h"
#include "engine/log/epoch_times.h"
#include "engine/log/log_files.h"
#include "engine/log/savepoint.h"
#include "shared/base/error.h"

namespace atolldb {

inline constexpr uint32_t kArchiveVersion = 1;
/// Limits for one record, so that it fits into a text file. The next record has the rest.
inline constexpr size_t kMaxRecordTimes = 100'000;
inline constexpr size_t kMaxRecordDdl = 10'000;

struct ArchiveIdentity {
  std::string id;       // of the archive, random
  std::string data_id;  // id in the owner file of data_dir; empty: it has none
  ClusterUuid cluster_uuid = {};
  std::string cluster;  // its name, for messages

  /// Whether both are of the same data directory. A restored or adopted copy goes on under the same
  /// uuid, with another data_id.
  bool is_of_same_data(const ArchiveIdentity& other) const {
    return data_id == other.data_id && cluster_uuid == other.cluster_uuid;
  }
  bool operator==(const ArchiveIdentity&) const = default;
};

/// A logger of an incarnation, wherever its files are.
struct LoggerName {
  uint16_t node = 0;
  uint16_t logger = 0;

  bool operator==(const LoggerName&) const = default;
};

struct ArchivedIncarnation {
  uint64_t number = 0;
  uint64_t start_epoch = 0;
  std::optional<uint64_t> cut_epoch;  // nothing: it ran when the record was written
  /// Commits of earlier incarnations that count have epochs up to this one. So their archived log
  /// must reach it, or a log is missing between them.
  uint64_t base_epoch = 0;
  /// Number of salvages before it (R56). A salvage gives commits up that the archive may have: the
  /// log of an earlier history does not lead to this incarnation.
  uint64_t history = 0;
  std::vector<LoggerName> loggers;

  bool operator==(const ArchivedIncarnation&) const = default;
};

struct ArchivedFile {
  std::string name;  // "node0/log_3_0_000012.atlog"
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  /// With this file and those before it, the stream has every commit up to this epoch that counts.
  uint64_t reach_epoch = 0;

  bool operator==(const ArchivedFile&) const = default;
};

struct ArchiveRecord {
  std::string archive;  // id of the archive
  uint64_t number = 0;  // from 1
  std::optional<ArchivedFile> file;
  std::vector<ArchivedIncarnation> incarnations;  // new ones, and those whose cut is new
  uint64_t first_ddl = 0;                         // number of DDL records that earlier ones have
  std::vector<DdlRecord> ddl;
  std::vector<EpochTime> times;  // ascending, after those of earlier records

  bool operator==(const ArchiveRecord&) const = default;
};

/// A name in an archive of a log file: its node, and its own name.
struct ArchivedLogName {
  uint32_t node = 0;
  LogFileName log;
};

/// "node0/log_3_0_000012.atlog", and its inverse.
std::string archived_log_name(uint32_t node, const LogFileName& log);
std::optional<ArchivedLogName> parse_archived_log_name(std::string_view name);

/// "identity.json"
inline constexpr const char* kIdentityName = "identity.json";
/// "records"
inline constexpr const char* kRecordsFolder = "records";
/// "records/00000012.json"
std::string archive_record_name(uint64_t number);
/// Returns the number in "00000012.json", or nothing for any other text.
std::optional<uint64_t> parse_record_file_name(std::string_view name);

std::string encode_identity(const ArchiveIdentity& identity);
std::string encode_record(const ArchiveRecord& record);

/// Decode the text of the file at `path`. Return code corruption, with path and reason, if it is
/// damaged or of another version.
Result<ArchiveIdentity> decode_identity(const std::string& text, const std::string& path);
Result<ArchiveRecord> decode_record(const std::string& text, const std::string& path);

/// Returns a new random id.
std::string new_archive_id();

}  // namespace atolldb
