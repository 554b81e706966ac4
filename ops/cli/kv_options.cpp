#include "ops/cli/kv_options.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb::cli {
namespace {

Result<shell::ValueFormat> format_of(const char* option, const std::string& text,
                                     shell::ValueFormat::Part part) {
  auto format = shell::ValueFormat::parse(text, part);
  if (format) return *std::move(format);
  return make_error(ExitCode::usage, std::string(option) + ": " + format.error());
}

Result<std::unique_ptr<shell::Connection>> connect_over_network(const KvOptions& options,
                                                                Isolation isolation) {
  ATOLL_ASSIGN(ConnectionTarget target, network_target_of(options));
  if (target.answer_at != AnswerAt::durable) {
    return make_error(ExitCode::usage, "--connect \"" + options.connect +
                                           "\": acknowledge=visible has no effect here: use "
                                           "--acknowledge visible instead");
  }
  return shell::Connection::open_network(std::move(target), isolation);
}

}  // namespace

void add_node_options(CLI::App& command, NodeChoice& choice) {
  CLI::Option* const node =
      command.add_option("--node", choice.node, "Node that runs the transactions")
          ->capture_default_str();
  add_connect_options(command, choice)->excludes(node);
}

CLI::Option* add_connect_options(CLI::App& command, NodeChoice& choice) {
  CLI::Option* const connect =
      command
          .add_option("--connect", choice.connect,
                      "Node in the network: atoll+tcp://HOST:PORT?server_key=KEY&key_file=FILE")
          ->type_name("WHERE");
  for (CLI::Option* const other : command.get_options([](const CLI::Option* option) {
         return option->check_name("--cluster") || option->check_name("--config");
       })) {
    connect->excludes(other);
  }
  command.add_option("--key-file", choice.key_file, "File of the client's keys, for --connect")
      ->type_name("FILE")
      ->needs(connect);
  return connect;
}

Result<ConnectionTarget> network_target_of(const NodeChoice& choice) {
  std::string where = choice.connect;
  if (!choice.key_file.empty()) {
    where += where.contains('?') ? "&" : "?";
    where += "key_file=" + escape_percent(choice.key_file);
  }
  ATOLL_ASSIGN(ConnectionTarget target, parse_connection_string(where));
  if (target.network) return target;
  return make_error(ExitCode::usage, "--connect \"" + choice.connect +
                                         "\": names a cluster of this machine: use --cluster or -c "
                                         "instead");
}

void add_kv_options(CLI::App& command, KvOptions& options) {
  command
      .add_option("--key-format", options.key_format,
                  "Format of keys: text, hex, u8 to u64, char(N), bytes(N), or several with commas")
      ->type_name("FORMAT")
      ->capture_default_str();
  command
      .add_option("--value-format", options.value_format,
                  "Format of values: those of keys, json, i8 to i64, f32, f64")
      ->type_name("FORMAT")
      ->capture_default_str();
  command.add_option("--isolation", options.isolation, "Isolation level of the transactions")
      ->check(CLI::IsMember({"serializable", "snapshot", "snapshot_read_only"}))
      ->capture_default_str();
  command.add_option("--snapshot", options.snapshot,
                     "Snapshot to read, the newest or a pinned one; only with snapshot_read_only");
  command
      .add_option("--acknowledge", options.acknowledge,
                  "End when the commit is durable, or when it is visible to other transactions")
      ->check(CLI::IsMember({"durable", "visible"}))
      ->capture_default_str();
  add_node_options(command, options);
  add_json_option(command, options.json);
}

Result<shell::Formats> formats_of(const KvOptions& options) {
  shell::Formats formats;
  ATOLL_ASSIGN(formats.key,
               format_of("--key-format", options.key_format, shell::ValueFormat::Part::key));
  ATOLL_ASSIGN(formats.value,
               format_of("--value-format", options.value_format, shell::ValueFormat::Part::value));
  return formats;
}

Result<shell::RunOptions> run_options_of(const KvOptions& options) {
  shell::RunOptions run;
  run.isolation = isolation_of(options.isolation).value_or(Isolation::serializable);
  run.snapshot = options.snapshot;
  run.answer_at = options.acknowledge == "visible" ? AnswerAt::precommitted : AnswerAt::durable;
  if (run.snapshot != 0 && run.isolation != Isolation::snapshot_read_only) {
    return make_error(ExitCode::usage, "--snapshot " + std::to_string(run.snapshot) +
                                           ": only --isolation snapshot_read_only reads a named "
                                           "snapshot: add that option");
  }
  return run;
}

Result<std::unique_ptr<shell::Connection>> connect_to_records(const ClusterChoice& choice,
                                                              const KvOptions& options) {
  ATOLL_ASSIGN(const shell::RunOptions run, run_options_of(options));
  if (!options.connect.empty()) return connect_over_network(options, run.isolation);
  ATOLL_ASSIGN(const Config config, find_running(choice));
  return shell::Connection::open(config, options.node, run.isolation,
                                 [config](ControlOperation operation, const Json& body) {
                                   return call_coordinator(config, operation, body, kDdlTimeout);
                                 });
}

Result<shell::BoundStatement> bind_to_storage(shell::Connection& connection,
                                              const shell::Statement& statement,
                                              const shell::Formats& formats) {
  ATOLL_ASSIGN(const shell::StorageEntry storage, connection.storage(statement.storage));
  auto bound = shell::bind(statement, storage, formats);
  if (!bound) return make_error(ExitCode::usage, bound.error());
  return *std::move(bound);
}

}  // namespace atolldb::cli
