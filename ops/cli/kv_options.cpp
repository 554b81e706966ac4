#include "ops/cli/kv_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>
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

/// Returns the choice of the cluster with this run folder. Its launcher has written the config
/// there.
Result<ClusterChoice> choice_of_run_folder(const std::string& connect, const std::string& run_dir) {
  const std::string file = run_dir + "/config.toml";
  std::error_code error;
  if (std::filesystem::is_regular_file(file, error)) return ClusterChoice{"", file};
  return make_error(ExitCode::not_running, "--connect \"" + connect +
                                               "\": no cluster has the run folder " + run_dir +
                                               ": start it with `atoll up`");
}

/// Returns an error if the connection string has a parameter that the command does not use.
Result<void> check_parameters(const std::string& connect, const ConnectionTarget& target,
                              const UsedParameters& used) {
  const auto unused = [&](const std::string& parameter, const char* advice) {
    return make_error(ExitCode::usage, "--connect \"" + connect + "\": " + parameter +
                                           " has no effect here: " + advice);
  };
  if (target.names_node && !used.node) {
    return unused("node=" + std::to_string(target.node), "remove it");
  }
  if (target.answer_at != AnswerAt::durable && !used.acknowledge) {
    return unused("acknowledge=visible", used.instead_of_acknowledge);
  }
  return {};
}

}  // namespace

void add_node_options(CLI::App& command, NodeChoice& choice) {
  CLI::Option* const node =
      command.add_option("--node", choice.node, "Node that runs the transactions")
          ->capture_default_str();
  add_connect_options(command, choice)->excludes(node);
}

void exclude_cluster_options(CLI::App& command, CLI::Option& connect) {
  for (CLI::Option* const other : command.get_options([](const CLI::Option* option) {
         return option->check_name("--cluster") || option->check_name("--config");
       })) {
    connect.excludes(other);
  }
}

CLI::Option* add_connect_options(CLI::App& command, NodeChoice& choice) {
  CLI::Option* const connect =
      command
          .add_option("--connect", choice.connect,
                      "Node by its connection string: atoll+tcp://HOST:PORT?server_key=KEY&"
                      "key_file=FILE, atoll:///RUN_DIR or atoll:NAME")
          ->type_name("WHERE");
  exclude_cluster_options(command, *connect);
  command.add_option("--key-file", choice.key_file, "File of the client's keys, for --connect")
      ->type_name("FILE")
      ->needs(connect);
  return connect;
}

Result<NodePlace> node_place_of(const ClusterChoice& choice, const NodeChoice& node,
                                const UsedParameters& used) {
  if (node.connect.empty()) return NodePlace{choice, node.node};
  std::string where = node.connect;
  if (!node.key_file.empty()) {
    where += where.contains('?') ? "&" : "?";
    where += "key_file=" + escape_percent(node.key_file);
  }
  ATOLL_ASSIGN(ConnectionTarget target, parse_connection_string(where));
  ATOLL_TRY(check_parameters(node.connect, target, used));
  NodePlace place;
  place.answer_at = target.answer_at;
  place.node = target.node;
  place.names_node = target.names_node;
  if (target.network) {
    place.network = std::move(target);
  } else {
    ATOLL_ASSIGN(place.choice, choice_of_run_folder(node.connect, target.run_dir));
  }
  return place;
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
  ATOLL_ASSIGN(
      NodePlace place,
      node_place_of(choice, options,
                    {.node = true, .instead_of_acknowledge = "use --acknowledge visible instead"}));
  if (place.network) {
    return shell::Connection::open_network(*std::move(place.network), run.isolation);
  }
  ATOLL_ASSIGN(const Config config, find_running(place.choice));
  return shell::Connection::open(config, place.node, run.isolation,
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
