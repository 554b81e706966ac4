// Format of an archive: copies of closed log files, and records that describe them. A restore
// begins with a backup and continues with this log up to the first gap (README.md).
//
//   identity.json             names the data; stored first
//   node<k>/log_...           closed log files, under the names that they had in the cluster
//   records/00000001.json     one record per stored log file, stored after it; numbers ascend
//
// No file ever changes. All JSON files have the form
//   {"format": "atoll-archive", "version": 1, "kind": ..., "crc32c": "<8 digits>", "body": {...}}
// crc32c: CRC32C of the member `body` as compact JSON with sorted members. The file is padded with
// line feeds.
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
/// Maximum numbers of times and of DDL records in one archive record, so that its text file stays
/// small. Further entries are in the next record.
inline constexpr size_t kMaxRecordTimes = 100'000;
inline constexpr size_t kMaxRecordDdl = 10'000;

struct ArchiveIdentity {
  std::string id;       // random id of the archive
  std::string data_id;  // id in the owner file of data_dir; empty if there is none
  ClusterUuid cluster_uuid = {};
  std::string cluster;  // name of the cluster, for messages

  /// Returns whether both identities are of the same data directory. A restored or adopted copy of
  /// the data keeps the cluster's uuid, but has another data_id.
  bool is_of_same_data(const ArchiveIdentity& other) const {
    return data_id == other.data_id && cluster_uuid == other.cluster_uuid;
  }
  bool operator==(const ArchiveIdentity&) const = default;
};

/// Names a logger of an incarnation, without the directory of its files.
struct LoggerName {
  uint16_t node = 0;
  uint16_t logger = 0;

  bool operator==(const LoggerName&) const = default;
};

struct ArchivedIncarnation {
  uint64_t number = 0;
  uint64_t start_epoch = 0;
  std::optional<uint64_t> cut_epoch;  // no value: the incarnation was running when it was recorded
  /// All commits of earlier incarnations that count have at most this epoch. If the archived log of
  /// those incarnations ends before this epoch, log is missing.
  uint64_t base_epoch = 0;
  /// Number of salvages before this incarnation (R56). A salvage gives up commits that the archive
  /// may have. So a restore cannot go from log with a smaller history number to this incarnation.
  uint64_t history = 0;
  std::vector<LoggerName> loggers;

  bool operator==(const ArchivedIncarnation&) const = default;
};

struct ArchivedFile {
  std::string name;  // in the archive: "node0/log_3_0_000012.atlog"
  uint64_t bytes = 0;
  uint32_t crc32c = 0;
  /// This file and the earlier files of its stream have all commits of the stream that count, up to
  /// this epoch.
  uint64_t reach_epoch = 0;

  bool operator==(const ArchivedFile&) const = default;
};

struct ArchiveRecord {
  std::string archive;  // id of the archive
  uint64_t number = 0;  // records are numbered from 1
  std::optional<ArchivedFile> file;
  std::vector<ArchivedIncarnation> incarnations;  // incarnations that are new, or whose cut is new
  uint64_t first_ddl = 0;                         // DDL records in all earlier archive records
  std::vector<DdlRecord> ddl;
  std::vector<EpochTime> times;  // ascending; later than those of earlier records

  bool operator==(const ArchiveRecord&) const = default;
};

/// The parts of a log file's name in an archive: its node, and its name in the cluster.
struct ArchivedLogName {
  uint32_t node = 0;
  LogFileName log;
};

/// Returns the name of a log file in an archive, for example "node0/log_3_0_000012.atlog".
std::string archived_log_name(uint32_t node, const LogFileName& log);
/// Returns the parts of such a name, or nothing for any other text.
std::optional<ArchivedLogName> parse_archived_log_name(std::string_view name);

/// Name in the archive of the file with the ArchiveIdentity.
inline constexpr const char* kIdentityName = "identity.json";
/// Name of the folder with the records.
inline constexpr const char* kRecordsFolder = "records";
/// Returns the path of a record in the archive: "records/00000012.json".
std::string archive_record_name(uint64_t number);
/// Returns the number in "00000012.json", or nothing for any other text.
std::optional<uint64_t> parse_record_file_name(std::string_view name);

std::string encode_identity(const ArchiveIdentity& identity);
std::string encode_record(const ArchiveRecord& record);

/// Both functions decode the text of the file at `path`. They return code corruption, with path and
/// reason, if the text is damaged or of another version.
Result<ArchiveIdentity> decode_identity(const std::string& text, const std::string& path);
Result<ArchiveRecord> decode_record(const std::string& text, const std::string& path);

/// Returns a new random id.
std::string new_archive_id();

}  // namespace atolldb
