// Runs statements: each one as a transaction of its own, several as one request, or within an
// open transaction.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <optional>
#include <vector>

#include "ops/shell/connection.h"
#include "ops/shell/statement.h"
#include "shared/client/kv_transaction.h"

namespace atolldb::shell {

/// How statements run outside of an open transaction.
struct RunOptions {
  Isolation isolation = Isolation::serializable;
  uint32_t snapshot = 0;  // id of the snapshot to read; 0: the newest
  AnswerAt answer_at = AnswerAt::durable;
};

/// Result of a statement that has succeeded.
struct StatementResult {
  std::optional<std::vector<std::byte>> value;  // get, and add with --return
  uint64_t version = 0;                         // get: version of the record
  bool has_more = false;                        // scan: more rows follow
};
/// Result of a transaction.
struct RunResult {
  std::vector<StatementResult> results;  // one for each statement
  uint64_t commit_epoch = 0;
  uint64_t commit_version = 0;
};

/// Gets the rows of a scan, in order. Returns false to end the scan.
using OnRow = std::function<bool(const KvRecord&)>;

/// Runs one statement as a transaction. A scan of more rows than a reply holds is several
/// transactions; with Isolation::snapshot_read_only all of them read one snapshot.
/// Errors: condition if a record exists, is absent or differs against the statement; usage for
/// wrong arguments; recovering; coordinator_unreachable if the outcome is unknown; else failed.
Result<RunResult> run_statement(Connection& connection, const BoundStatement& statement,
                                const RunOptions& options, const OnRow& on_row);

/// Runs all statements as one transaction. Gives the rows of all scans to `on_row`, with the index
/// of the statement. A scan returns at most the rows that fit into a reply.
Result<RunResult> run_together(Connection& connection,
                               const std::vector<BoundStatement>& statements,
                               const RunOptions& options,
                               const std::function<bool(size_t, const KvRecord&)>& on_row);

/// Runs a statement within a transaction.
Result<StatementResult> run_within(KvTransaction& transaction, const BoundStatement& statement,
                                   const OnRow& on_row);

/// Returns the error of a request that failed. `what`: the object and what was attempted.
Error error_of(const std::string& what, Status status, const std::string& message);
/// Returns "get accounts alice" for errors.
std::string name_of(const BoundStatement& statement);

}  // namespace atolldb::shell
