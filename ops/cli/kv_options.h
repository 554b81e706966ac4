// Options that the commands on nodes share: how they reach a node. And those of `atoll kv` and
// `atoll shell`: how they print records.
#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "ops/cli/cluster_finder.h"
#include "ops/shell/connection.h"
#include "ops/shell/execute.h"
#include "ops/shell/statement.h"

namespace atolldb::cli {

/// The node that runs the requests of a command.
struct NodeChoice {
  uint32_t node = 0;     // of a cluster of this machine
  std::string connect;   // connection string of a node; empty: `node` of the chosen cluster
  std::string key_file;  // of the client; only with `connect`
};

/// The node that the options name: of a cluster on this machine, or in the network.
struct NodePlace {
  ClusterChoice choice{};   // without `network`
  uint32_t node = 0;        // without `network`
  bool names_node = false;  // the connection string names `node`
  std::optional<ConnectionTarget> network{};
  AnswerAt answer_at = AnswerAt::durable;  // as the connection string says
};

struct KvOptions : NodeChoice {
  std::string key_format = "text";
  std::string value_format = "text";
  std::string isolation = "serializable";
  std::string acknowledge = "durable";
  uint32_t snapshot = 0;
  bool json = false;
};

/// Adds --node, --connect and --key-file. REQUIRES: the command has the options of
/// add_cluster_options.
void add_node_options(CLI::App& command, NodeChoice& choice);
/// Makes --connect exclude --cluster and -c.
void exclude_cluster_options(CLI::App& command, CLI::Option& connect);
/// Adds --connect and --key-file. Returns --connect. REQUIRES: as above.
CLI::Option* add_connect_options(CLI::App& command, NodeChoice& choice);
/// Parameters of connection strings that a command uses.
struct UsedParameters {
  bool node = false;
  bool acknowledge = false;
  const char* instead_of_acknowledge = "remove it";  // advice if it is given, but not used
};
/// Returns the node that --connect and --key-file name, or else the one of the other options. A
/// connection string with a run folder, or with the name of a cluster, names a cluster of this
/// machine. Errors: usage, also for a parameter that has no effect; not_running if the run folder
/// has no cluster.
Result<NodePlace> node_place_of(const ClusterChoice& choice, const NodeChoice& node,
                                const UsedParameters& used);

/// Adds the options, with --json and those of add_node_options.
void add_kv_options(CLI::App& command, KvOptions& options);

/// Returns an error of code usage that names the option.
Result<shell::Formats> formats_of(const KvOptions& options);
Result<shell::RunOptions> run_options_of(const KvOptions& options);

/// Connects to the chosen cluster.
Result<std::unique_ptr<shell::Connection>> connect_to_records(const ClusterChoice& choice,
                                                              const KvOptions& options);

/// Returns the storage and the arguments of a statement as bytes. Error: usage, with the statement
/// and the argument.
Result<shell::BoundStatement> bind_to_storage(shell::Connection& connection,
                                              const shell::Statement& statement,
                                              const shell::Formats& formats);

}  // namespace atolldb::cli
