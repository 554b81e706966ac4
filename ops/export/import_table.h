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
  uint64_t rows = 0;      // committed
  uint64_t wrong = 0;     // reported, not committed
  uint64_t left_out = 0;  // committed by an earlier run
};

struct ImportRequest {
  /// Master-tree: overwrites existing records. Otherwise these are wrong rows.
  bool is_upsert = false;
  /// Continues after wrong rows. Otherwise the first one ends the import; batches in flight are
  /// still committed.
  bool skips_wrong_rows = false;
  uint32_t connections = 1;
  /// Opens the session of a connection.
  std::function<Result<std::unique_ptr<SessionClient>>(uint32_t connection)> connect;
  /// Gets each wrong row as "file:line: column: value: reason". Called by one thread at a time.
  std::function<void(const std::string&)> on_wrong_row;
  /// Called by one thread at a time. An error ends the import and is returned.
  std::function<Result<void>(const ImportCounts&)> on_progress;
};

/// Sets `counts` in any case. Errors: code failed at a wrong row, if these are not skipped; code
/// coordinator_unreachable if the cluster fails, with the lines whose outcome is unknown; those of
/// files.
Result<void> import_table(const TableSchema& table, ImportSource& source,
                          const ImportRequest& request, ImportCounts& counts);

}  // namespace atolldb
