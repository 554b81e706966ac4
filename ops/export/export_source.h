// The data that an export reads: a snapshot, or a checkpoint and the log after it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ops/export/table_schema.h"
#include "ops/verify/snapshot_walk.h"
#include "shared/base/error.h"

namespace atolldb {

/// Thread: any, for all functions.
class ExportSource {
 public:
  virtual ~ExportSource() = default;

  /// Divides the storage of a table into 1 to `count` ranges that cover it, in order, without
  /// overlaps. Errors: code failed if the storage is missing, or its type or payload differs from
  /// the schema's.
  virtual Result<std::vector<WalkRange>> split(const TableSchema& table, uint32_t count) const = 0;
  /// Visits all records of the range, as walk_snapshot does. The same range always has the same
  /// records, in the same order. Errors: also those of the visitor.
  virtual Result<void> walk(const TableSchema& table, const WalkRange& range,
                            const RecordVisitor& visit) const = 0;
};

/// Returns the error of a table that does not fit its storage, or a record of it.
std::unexpected<Error> unfit_table(const TableSchema& table, const std::string& reason);

/// What a source knows about the storage of a table.
struct ExportedStorage {
  uint32_t id = 0;
  StorageType type = StorageType::none;
  uint64_t payload_bytes = 0;
  uint64_t record_count = 0;
};
/// Returns ok if the schema describes a storage like this one.
Result<void> check_table(const TableSchema& table, const ExportedStorage& storage);

}  // namespace atolldb
