// The DDL log: creations and drops of storages. Each record is durable before it is acknowledged.
// The log is never cut (R34).
//
// data_dir/coordinator/ddl_<ordinal>.atlog: files of kDdlFileBytes. Each record has a block of 4
// KiB of its own, so a torn write damages no other record. Each record is synced before the next
// one is written, so only the last one can be torn. A torn record was never acknowledged and does
// not count; the next record overwrites it. Any other damage is corruption.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/base/error.h"
#include "shared/file/file.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

inline constexpr uint64_t kDdlFileBytes = uint64_t{1} << 20;

enum class DdlOperation : uint8_t { create_storage = 1, drop_storage = 2 };

/// A creation or drop of a storage.
struct DdlRecord {
  DdlOperation operation = DdlOperation::create_storage;
  uint32_t storage_id = 0;
  uint64_t epoch = 0;  // current epoch at the time of the operation
  std::string name;    // at most kMaxStorageName bytes
  // The following members are set only in creations.
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;
  uint64_t record_count = 0;

  bool operator==(const DdlRecord&) const = default;
};

struct DdlContent {
  std::vector<DdlRecord> records;
  std::string torn;  // empty, or file, offset and reason of a torn last record
  // Position of the next record.
  uint32_t next_ordinal = 0;
  uint64_t next_offset = 0;
};

/// Reads the whole log. A missing log has no records. Changes nothing on disk.
/// `durable_records`: the count of records in the savepoint.
/// Error: code corruption, with file, offset and reason, for damage before the last record, or to
/// one of the first `durable_records` records.
Result<DdlContent> read_ddl_log(FileSystem& file_system, const std::string& data_dir,
                                const ClusterUuid& cluster_uuid, uint64_t durable_records = 0);

/// Appends records to the DDL log. Thread: one thread of the coordinator, the only writer.
class DdlLog {
 public:
  /// Reads the log and syncs what it read, so that callers may rely on it.
  static Result<DdlLog> open(FileSystem& file_system, const std::string& data_dir,
                             const ClusterUuid& cluster_uuid);

  /// Returns the records that open() has read, followed by the appended ones.
  const std::vector<DdlRecord>& records() const { return content_.records; }
  const std::string& torn() const { return content_.torn; }

  /// Appends a record, which is durable on return. After an error every call returns that error.
  Result<void> append(const DdlRecord& record);

 private:
  DdlLog(FileSystem& file_system, std::string directory, const ClusterUuid& cluster_uuid)
      : file_system_(&file_system), directory_(std::move(directory)), cluster_uuid_(cluster_uuid) {}

  Result<void> write(const DdlRecord& record);
  Result<void> open_file();

  FileSystem* file_system_;
  std::string directory_;
  ClusterUuid cluster_uuid_;
  DdlContent content_;
  std::unique_ptr<File> file_;  // the file of next_ordinal, opened on first use
  std::optional<Error> failure_;
};

}  // namespace atolldb
