// `atoll kv get|put|insert|del|add|append|check|scan|txn`: reads and writes single records by hand.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "ops/cli/command.h"
#include "ops/cli/kv_options.h"
#include "ops/cli/usage_text.h"
#include "ops/shell/print_result.h"
#include "ops/shell/words.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct TxnOptions {
  std::vector<std::string> statements;
};

Result<void> run_one(const ClusterChoice& choice, const KvOptions& options,
                     const shell::Statement& statement) {
  ATOLL_ASSIGN(const shell::Formats formats, formats_of(options));
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options));
  ATOLL_ASSIGN(const auto connection, connect_to_records(choice, options));
  ATOLL_ASSIGN(const shell::BoundStatement bound, bind_to_storage(*connection, statement, formats));
  shell::ResultPrinter printer(formats, options.json);
  ATOLL_ASSIGN(const shell::RunResult done,
               shell::run_statement(*connection, bound, run, [&](const KvRecord& record) {
                 return printer.row(bound, record);
               }));
  return printer.end(bound, done.results.front(), done.commit_epoch);
}

/// Parses one statement of a transaction.
Result<shell::Statement> parse_statement(const std::string& line) {
  auto words = shell::split_words(line);
  if (!words) return make_error(ExitCode::usage, words.error());
  const auto statement = std::make_shared<shell::Statement>();
  CLI::App parser("", "");
  parser.set_help_flag();
  parser.require_subcommand(1);
  shell::add_statements(
      parser, statement, [] {}, [](CLI::App& command) { command.set_help_flag(); });
  try {
    std::vector<std::string> reversed(words->rbegin(), words->rend());
    parser.parse(reversed);
  } catch (const CLI::ParseError& error) {
    return make_error(ExitCode::usage, usage_text(parser, error));
  }
  return *statement;
}

std::vector<std::string> lines_of(std::istream& input) {
  std::vector<std::string> lines;
  for (std::string line; std::getline(input, line);) lines.push_back(line);
  return lines;
}

Result<void> run_txn(const ClusterChoice& choice, const KvOptions& options, const TxnOptions& txn) {
  ATOLL_ASSIGN(const shell::Formats formats, formats_of(options));
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options));
  const std::vector<std::string> lines =
      txn.statements.empty() ? lines_of(std::cin) : txn.statements;
  std::vector<shell::Statement> statements;
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto words = shell::split_words(lines[i]);
    if (words && words->empty()) continue;  // a blank line, or a comment
    auto statement = parse_statement(lines[i]);
    if (!statement) {
      return make_error(ExitCode::usage, "txn: statement " + std::to_string(i + 1) + ": " +
                                             statement.error().message);
    }
    statements.push_back(*std::move(statement));
  }
  if (statements.empty() || statements.size() > kMaxKvOperations) {
    return make_error(ExitCode::usage, "txn: a transaction has 1 to " +
                                           std::to_string(kMaxKvOperations) + " statements, not " +
                                           std::to_string(statements.size()));
  }
  ATOLL_ASSIGN(const auto connection, connect_to_records(choice, options));
  std::vector<shell::BoundStatement> bound;
  for (const shell::Statement& statement : statements) {
    ATOLL_ASSIGN(auto one, bind_to_storage(*connection, statement, formats));
    bound.push_back(std::move(one));
  }
  shell::ResultPrinter printer(formats, options.json);
  ATOLL_ASSIGN(
      const shell::RunResult done,
      shell::run_together(*connection, bound, run, [&](size_t index, const KvRecord& record) {
        return printer.keep_row(index, bound[index], record);
      }));
  return printer.end_together(bound, done);
}

}  // namespace

void add_kv_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("kv", "Read and write records");
  group->require_subcommand(1);
  const auto options = std::make_shared<KvOptions>();
  const auto statement = std::make_shared<shell::Statement>();
  const auto finish = [&](CLI::App& command) {
    add_cluster_options(command, invocation);
    add_kv_options(command, *options);
  };
  shell::add_statements(
      *group, statement,
      [&invocation, options, statement] {
        invocation.run = [&invocation, options, statement] {
          return run_one(invocation.choice, *options, *statement);
        };
      },
      finish);

  const auto txn = std::make_shared<TxnOptions>();
  CLI::App* command = group->add_subcommand("txn", "Run several statements as one transaction");
  command->add_option("STATEMENT", txn->statements,
                      "Statements, for example 'put t k v'; none: lines of standard input");
  finish(*command);
  command->callback([&invocation, options, txn] {
    invocation.run = [&invocation, options, txn] {
      return run_txn(invocation.choice, *options, *txn);
    };
  });
}

}  // namespace atolldb::cli
