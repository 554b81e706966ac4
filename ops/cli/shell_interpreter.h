// The statements of `atoll shell`.
#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/cli/kv_options.h"
#include "ops/cli/new_storage.h"
#include "ops/shell/connection.h"
#include "shared/base/error.h"
#include "shared/client/kv_transaction.h"

namespace atolldb::cli {

/// Runs lines of the shell, and keeps the open transaction and the settings between them. Thread:
/// one.
class ShellInterpreter {
 public:
  /// REQUIRES: `connection` outlives the interpreter. The options are valid.
  ShellInterpreter(shell::Connection& connection, KvOptions options);

  /// Runs one line, and prints its result on standard output. An error of code usage has changed
  /// nothing.
  Result<void> run(const std::string& line);
  /// Returns whether `quit` was run.
  bool has_quit() const { return has_quit_; }
  bool is_in_transaction() const { return transaction_ != nullptr; }
  /// Returns the words that may replace the last word of the line.
  std::vector<std::string> complete(std::string_view line);

 private:
  struct Parsed;

  /// Adds all statements of the shell to a parser.
  void add_all(CLI::App& parser, Parsed& parsed) const;
  Result<void> run_parsed(const Parsed& parsed);
  Result<void> run_records(const shell::Statement& statement);
  Result<void> begin(const std::string& kind);
  Result<void> commit();
  Result<void> abort();
  void print_done(Json document) const;
  Result<void> set(const std::string& name, const std::string& value);
  Result<void> list_storages();
  Result<void> create_storage(const NewStorage& storage);
  Result<void> drop_storage(const std::string& name);
  Result<void> call(const std::string& procedure, const std::string& input);
  Result<void> help(const std::string& topic) const;
  /// Returns an error if a transaction is open: `what` is not part of transactions.
  Result<void> check_no_transaction(const char* what) const;
  /// Ends the transaction if its session has ended. Returns an error if the transaction was lost.
  Result<void> check_session();

  shell::Connection& connection_;
  KvOptions options_;
  shell::Formats formats_;
  bool timing_ = false;
  bool has_quit_ = false;
  std::unique_ptr<KvTransaction> transaction_;
  /// A transaction has ended by itself, or could not begin. The user may believe that it is open,
  /// so no statement runs outside of it before `commit` or `abort`.
  bool is_transaction_lost_ = false;
  uint32_t snapshot_ = 0;  // of the open transaction; 0: it is serializable
};

}  // namespace atolldb::cli
