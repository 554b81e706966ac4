// Imports the rows of CSV files into a storage of a running cluster, over several sessions.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ops/export/import_source.h"
#include "shared/base/error.h"
#include "shared/client/session_client.h"

namespace atolldb {

inline constexpr uint32_t kMaxImportConnections = 64;

struct ImportCounts {
  uint64_t rows = 0;      // committed rows
  uint64_t wrong = 0;     // wrong rows, reported and not committed
  uint64_t left_out = 0;  // rows that an earlier run has committed
};

struct ImportRequest {
  /// Master-tree: true: rows overwrite existing records. False: rows whose key exists are wrong.
  bool is_upsert = false;
  /// True: continues after wrong rows. False: the first wrong row ends the import; batches in
  /// flight are still committed.
  bool skips_wrong_rows = false;
  uint32_t connections = 1;
  /// Opens the session of a connection.
  std::function<Result<std::unique_ptr<SessionClient>>(uint32_t connection)> connect;
  /// Receives each wrong row as "file:line: column: value: reason". Called by one thread at a time.
  std::function<void(const std::string&)> on_wrong_row;
  /// Called by one thread at a time. An error ends the import and is returned.
  std::function<Result<void>(const ImportCounts&)> on_progress;
};

/// Sets `counts` even if it returns an error. Returns code failed at a wrong row, unless wrong rows
/// are skipped. Returns code coordinator_unreachable if the cluster fails; the message names the
/// lines whose outcome is unknown. Also returns errors of the files.
Result<void> import_table(const TableSchema& table, ImportSource& source,
                          const ImportRequest& request, ImportCounts& counts);

}  // namespace atolldb
