// Prints the results of statements as text or JSON.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ops/shell/execute.h"
#include "ops/shell/statement.h"
#include "shared/base/error.h"

namespace atolldb::shell {

/// Prints on standard output.
///
///   text  get: the value. scan: key, tab and value per line. Other statements: ok.
///   JSON  one document per statement or transaction, with `schema_version`
///
/// After an error (code usage: a record does not have the format that the user has given) nothing
/// more is printed. Thread: one.
class ResultPrinter {
 public:
  ResultPrinter(const Formats& formats, bool json) : formats_(formats), json_(json) {}

  /// Prints a row of a scan. Returns false after an error.
  bool row(const BoundStatement& statement, const KvRecord& record);
  /// Prints the result of a statement that ran alone or in an open transaction.
  Result<void> end(const BoundStatement& statement, const StatementResult& result,
                   uint64_t commit_epoch);

  /// Keeps a row of the scan with this index, for `end_together`.
  bool keep_row(size_t index, const BoundStatement& statement, const KvRecord& record);
  /// Prints the results of statements that ran as one transaction.
  Result<void> end_together(const std::vector<BoundStatement>& statements, const RunResult& run);

 private:
  Result<std::string> row_text(const BoundStatement& statement, const KvRecord& record) const;
  Result<nlohmann::json> row_json(const BoundStatement& statement, const KvRecord& record) const;
  Result<std::string> result_text(const BoundStatement& statement,
                                  const StatementResult& result) const;
  Result<nlohmann::json> result_json(const BoundStatement& statement,
                                     const StatementResult& result) const;

  const Formats& formats_;
  const bool json_;
  bool is_open_ = false;  // the head of a JSON document with rows was printed
  std::map<size_t, std::vector<nlohmann::json>> kept_json_;
  std::map<size_t, std::string> kept_text_;
  Error error_{ExitCode::success, ""};
};

}  // namespace atolldb::shell
