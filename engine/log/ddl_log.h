// Creations and drops of storages, each durable before it is acknowledged; never cut (R34).
//
// data_dir/coordinator/ddl_<ordinal>.atlog: files of kDdlFileBytes, a record per block of 4 KiB, so
// that a torn write harms no other record. Since each is synced before the next is written, only
// the last one can be torn: it was never acknowledged, does not count, and its place is taken by
// the next one. Any other damage is corruption.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/log/log_writer.h"
#include "shared/error.h"
#include "shared/file/file.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

inline constexpr uint64_t kDdlFileBytes = uint64_t{1} << 20;

enum class DdlOperation : uint8_t { create_storage = 1, drop_storage = 2 };

struct DdlRecord {
  DdlOperation operation = DdlOperation::create_storage;
  uint32_t storage_id = 0;
  uint64_t epoch = 0;  // current when it was done
  std::string name;    // at most kMaxStorageName bytes
  // Of creations alone.
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;
  uint64_t record_count = 0;

  bool operator==(const DdlRecord&) const = default;
};

struct DdlContent {
  std::vector<DdlRecord> records;
  std::string torn;  // empty, or the file, offset and reason of a last record that does not count
  // Where the next record goes.
  uint32_t next_ordinal = 0;
  uint64_t next_offset = 0;
};

/// Reads all there is; nothing there is no record. Damage before the last record, or to one of the
/// first `durable_records` (of the savepoint): code corruption, with file, offset and reason.
/// Changes nothing.
Result<DdlContent> read_ddl_log(FileSystem& file_system, const std::string& data_dir,
                                const ClusterUuid& cluster_uuid, uint64_t durable_records = 0);

/// One thread of the coordinator, the only one that writes.
class DdlLog {
 public:
  /// Reads the log and makes durable what it read: from now on others may rely on it.
  static Result<DdlLog> open(FileSystem& file_system, const std::string& data_dir,
                             const ClusterUuid& cluster_uuid);

  /// All that was read by open(), then appended.
  const std::vector<DdlRecord>& records() const { return content_.records; }
  const std::string& torn() const { return content_.torn; }

  /// Durable when it returns. After an error every call answers that error.
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
  std::unique_ptr<File> file_;  // of next_ordinal, once it is needed
  std::optional<Error> failure_;
};

}  // namespace atolldb
