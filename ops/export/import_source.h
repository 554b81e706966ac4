// Gives the rows of CSV files to several threads in batches, and remembers in a file which batches
// are committed.
//
//   FILE of --resume:   one line of JSON: storage, table, checksum of the schema, the CSV files:
//                       path, size, time of the last change, checksum of both ends
//                       one line per committed batch: <index of the CSV file> <offset> <end>
//
// The line of a batch follows its commit. A crash in between makes the next run send the batch
// again. So only an import by upserts, or into an array, is exact after a crash.
#pragma once

#include <cstdint>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ops/export/csv.h"
#include "ops/export/row_format.h"
#include "ops/export/table_schema.h"
#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

/// Maximum number of CSV files of one import.
inline constexpr size_t kMaxImportFiles = 10'000;
/// Maximum number of rows of a batch. A batch is one transaction, if its rows fit.
inline constexpr size_t kMaxBatchRows = 256;

/// Number of bytes that the checksum of a CSV file covers at the begin of the file, and at its end.
inline constexpr size_t kImportEndBytes = size_t{64} << 10;

/// Facts by which `--resume` recognizes a CSV file. A change in the middle of a file that keeps
/// size and time is not found.
struct FileIdentity {
  uint64_t bytes = 0;
  int64_t changed_ns = 0;    // time of the last change, since the epoch of the system clock
  uint32_t ends_crc32c = 0;  // CRC32C of the first kImportEndBytes, continued by the last ones
};

struct ImportFile {
  std::string path;
  FileIdentity identity;
  FieldOrder order;  // order of the fields in the file's header
};

/// Consecutive rows of one file.
struct ImportBatch {
  size_t file = 0;
  std::vector<CsvRow> rows;
};

/// Thread-safe.
class ImportSource {
 public:
  /// Opens the files and reads their headers. Errors name the file.
  static Result<std::unique_ptr<ImportSource>> open(const TableSchema& table,
                                                    const std::vector<std::string>& paths);

  /// Continues after the batches that the file `path` lists, or creates this file. `target`: a name
  /// of the storage that differs from those of all other storages and clusters. Returns code failed
  /// if the file is of another import, or if another process uses it. REQUIRES: no batch was taken.
  Result<void> remember_in(const std::string& path, const std::string& target,
                           uint32_t schema_crc32c);

  /// Takes the next batch. It is empty at the end.
  Result<ImportBatch> next();
  /// Records that all rows of the batch are committed, or reported as wrong.
  Result<void> finish(const ImportBatch& batch);

  const ImportFile& file(size_t index) const { return files_[index]; }
  uint64_t bytes() const;
  uint64_t bytes_read();
  uint64_t rows_left_out();

 private:
  explicit ImportSource(const TableSchema& table) : table_(table) {}
  Result<void> open_next();
  bool is_committed(const CsvRow& row) const;
  Result<void> read_memory(const std::string& path, const std::string& header);

  const TableSchema& table_;
  std::vector<ImportFile> files_;
  std::map<size_t, std::map<uint64_t, uint64_t>> committed_;  // file -> begin of a batch -> its end

  std::mutex mutex_;
  size_t at_ = 0;                    // guarded by mutex_; index of the open file
  std::ifstream stream_;             // guarded by mutex_
  std::optional<CsvReader> reader_;  // guarded by mutex_
  uint64_t before_ = 0;              // guarded by mutex_; bytes of the files before the open file
  uint64_t read_ = 0;                // guarded by mutex_; bytes read of the open file
  uint64_t left_out_ = 0;            // guarded by mutex_; rows that an earlier run has committed
  UniqueFd memory_;                  // guarded by mutex_; file of --resume
};

}  // namespace atolldb
