// `atoll session ls|kill`: lists and ends the sessions of clients.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ops/cli/cluster_call.h"
#include "ops/cli/command.h"
#include "ops/cli/kv_options.h"
#include "ops/cli/terminal.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"

namespace atolldb::cli {
namespace {

struct SessionCommandOptions {
  std::optional<uint32_t> node;       // nothing: all nodes
  NodeChoice remote;                  // --connect: a cluster, or one node in the network
  std::vector<std::string> sessions;  // each as NODE/SESSION
  bool all = false;
  bool json = false;
};

/// Names a session of the cluster.
struct SessionName {
  uint32_t node = 0;
  uint32_t session = 0;
};

/// A node answers within milliseconds, unless all its processors are busy.
constexpr std::chrono::milliseconds kSessionTimeout{10'000};

Result<SessionName> parse_session_name(const std::string& text) {
  SessionName name;
  const char* const end = text.data() + text.size();
  const auto node = std::from_chars(text.data(), end, name.node);
  if (node.ec == std::errc() && node.ptr != end && *node.ptr == '/') {
    const auto session = std::from_chars(node.ptr + 1, end, name.session);
    if (session.ec == std::errc() && session.ptr == end) return name;
  }
  return make_error(
      ExitCode::usage,
      "\"" + text + "\": expected NODE/SESSION, for example 0/3: see `atoll session ls`");
}

/// The nodes that a command asks.
class SessionNodes {
 public:
  /// Finds the nodes of the cluster, or connects to the one in the network.
  static Result<SessionNodes> find(const ClusterChoice& choice,
                                   const SessionCommandOptions& options) {
    SessionNodes found;
    ATOLL_ASSIGN(NodePlace place, node_place_of(choice, options.remote, {.node = true}));
    if (!place.network) {
      ATOLL_ASSIGN(found.config_, find_running(place.choice));
      if (place.names_node) {
        ATOLL_TRY(check_node(found.config_, place.node, "--connect"));
        found.nodes_ = {place.node};
        return found;
      }
      for (uint32_t node = 0; node < found.config_.nodes.size(); ++node) {
        found.nodes_.push_back(node);
      }
      return found;
    }
    ATOLL_ASSIGN(found.connection_, shell::Connection::open_network(*std::move(place.network),
                                                                    Isolation::serializable));
    ATOLL_ASSIGN(ClientTransport* const session, found.connection_->session());
    found.nodes_ = {session->node()};
    return found;
  }

  const std::vector<uint32_t>& nodes() const { return nodes_; }
  /// `what`: the argument that names the node.
  Result<void> check(uint32_t node, const std::string& what) const {
    if (connection_ == nullptr) {
      ATOLL_TRY(check_node(config_, node, what));
    }
    if (std::ranges::find(nodes_, node) != nodes_.end()) return {};
    return make_error(ExitCode::usage, what + ": --connect reaches node " +
                                           std::to_string(nodes_.front()) +
                                           " only: connect to node " + std::to_string(node));
  }
  Result<Json> ask(uint32_t node, ControlOperation operation, const Json& body) const {
    return connection_ == nullptr ? call_node(config_, node, operation, body, kSessionTimeout)
                                  : connection_->call(operation, body);
  }

 private:
  Config config_;
  std::unique_ptr<shell::Connection> connection_;  // null: a cluster of this machine
  std::vector<uint32_t> nodes_;
};

/// Makes text of a client safe for one cell of a table.
void clean_member(Json& session, const char* member) {
  if (!session.contains(member)) return;
  std::string text = printable(session.value(member, ""));
  std::ranges::replace_if(text, [](char c) { return c == '\n' || c == '\t'; }, '?');
  session[member] = text;
}

/// Returns the sessions of one node, each with the number of the node.
Result<Json> sessions_of_node(const SessionNodes& nodes, uint32_t node) {
  const auto ask = [&](const Json& body) {
    return nodes.ask(node, ControlOperation::session_list, body);
  };
  ATOLL_ASSIGN(Json sessions, shell::whole_list(ask, "sessions", "session"));
  for (Json& session : sessions) {
    session["node"] = node;
    clean_member(session, "program");
    clean_member(session, "oldest_procedure");
    clean_member(session, "address");
  }
  return sessions;
}

std::string elapsed_cell(const Json& session, const char* member) {
  if (!session.contains(member)) return "-";
  const double seconds = session.value(member, 0.0);
  if (seconds < 60) return fmt::format("{:.2f} s", seconds);
  const auto minutes = static_cast<uint64_t>(seconds / 60);
  if (minutes < 60) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

/// Returns the cell with the process of a local client, or with the address of a network client.
std::string client_cell(const Json& session) {
  if (session.contains("pid")) return std::to_string(session.value("pid", int64_t{0}));
  return session.value("address", "-");
}

/// Returns the cell with the user of a local client, or with the name of a network client's key.
std::string user_cell(const Json& session) {
  if (session.contains("uid")) return user_text(session.value("uid", 0u));
  return session.contains("key") ? "key " + session.value("key", "") : "-";
}

std::vector<std::string> session_row(const Json& session) {
  return {fmt::format("{}/{}", session.value("node", uint32_t{0}),
                      session.value("session", uint32_t{0})),
          session.value("state", ""),
          client_cell(session),
          session.value("program", "-"),
          user_cell(session),
          elapsed_cell(session, "age_s"),
          format_count(session.value("in_flight", uint64_t{0})),
          session.value("oldest_procedure", "-"),
          elapsed_cell(session, "oldest_s"),
          format_count(session.value("answered", uint64_t{0})),
          elapsed_cell(session, "last_request_s")};
}

Result<void> list_sessions(const ClusterChoice& choice, const SessionCommandOptions& options) {
  ATOLL_ASSIGN(const SessionNodes nodes, SessionNodes::find(choice, options));
  std::vector<uint32_t> asked = nodes.nodes();
  if (options.node) {
    ATOLL_TRY(nodes.check(*options.node, "--node " + std::to_string(*options.node)));
    asked = {*options.node};
  }
  Json sessions = Json::array();
  for (const uint32_t node : asked) {
    ATOLL_ASSIGN(Json of_node, sessions_of_node(nodes, node));
    for (Json& session : of_node) sessions.push_back(std::move(session));
  }
  if (options.json) {
    const Json whole = {{"schema_version", 1}, {"sessions", sessions}};
    std::printf("%s\n", whole.dump(2).c_str());
    return {};
  }
  std::vector<std::vector<std::string>> rows = {{"SESSION", "STATE", "CLIENT", "PROGRAM", "USER",
                                                 "AGE", "IN FLIGHT", "OLDEST REQUEST", "FOR",
                                                 "ANSWERED", "LAST REQUEST"}};
  for (const Json& session : sessions) rows.push_back(session_row(session));
  std::printf("%s", format_table(rows).c_str());
  return {};
}

/// Adds the sessions that a node has ended to `killed`. Without --json, prints a line for each.
void add_killed(uint32_t node, const Json& answer, bool json, Json& killed) {
  const Json sessions = answer.value("sessions", Json::array());
  for (const Json& session : sessions) {
    killed.push_back({{"node", node},
                      {"session", session.value("session", uint32_t{0})},
                      {"in_flight", session.value("in_flight", uint32_t{0})}});
    if (json) continue;
    std::printf("session %u/%u ended: requests in flight: %u\n", node,
                session.value("session", uint32_t{0}), session.value("in_flight", uint32_t{0}));
  }
}

void print_killed_json(const Json& killed) {
  const Json whole = {{"schema_version", 1}, {"killed", killed}};
  std::printf("%s\n", whole.dump(2).c_str());
}

Result<void> kill_all_sessions(const SessionNodes& nodes, bool json) {
  Json killed = Json::array();
  for (const uint32_t node : nodes.nodes()) {
    ATOLL_ASSIGN(const Json answer,
                 nodes.ask(node, ControlOperation::session_kill, {{"all", true}}));
    add_killed(node, answer, json, killed);
  }
  if (json) {
    print_killed_json(killed);
  } else if (killed.empty()) {
    std::printf("no session is open\n");
  }
  return {};
}

Result<void> kill_sessions(const ClusterChoice& choice, const SessionCommandOptions& options) {
  if (!options.all && options.sessions.empty()) {
    return make_error(ExitCode::usage,
                      "session kill: no session given: give NODE/SESSION, for example 0/3, or "
                      "--all: see `atoll session kill --help`");
  }
  std::vector<SessionName> names;
  for (const std::string& text : options.sessions) {
    ATOLL_ASSIGN(const SessionName name, parse_session_name(text));
    names.push_back(name);
  }
  ATOLL_ASSIGN(const SessionNodes nodes, SessionNodes::find(choice, options));
  if (options.all) return kill_all_sessions(nodes, options.json);
  // Checks all names before it ends the first session.
  for (size_t i = 0; i < names.size(); ++i) {
    ATOLL_TRY(nodes.check(names[i].node, "session " + options.sessions[i]));
  }
  bool is_one_missing = false;
  Json killed = Json::array();
  for (const SessionName& name : names) {
    const auto answer =
        nodes.ask(name.node, ControlOperation::session_kill, {{"session", name.session}});
    if (answer) {
      add_killed(name.node, *answer, options.json, killed);
      continue;
    }
    // A session that does not exist does not keep the others alive. After any other error, the
    // node does not answer.
    if (answer.error().code != ExitCode::failed) return std::unexpected(answer.error());
    print_error(answer.error());
    is_one_missing = true;
  }
  if (options.json) print_killed_json(killed);
  if (is_one_missing) return make_error(ExitCode::failed, "");  // its text has been printed
  return {};
}

}  // namespace

void add_session_command(CLI::App& app, Invocation& invocation) {
  CLI::App* group = app.add_subcommand("session", "List and end the sessions of clients");
  group->require_subcommand(1);
  const auto options = std::make_shared<SessionCommandOptions>();
  CLI::App* listing =
      add_cluster_command(*group, invocation, "ls", "List the sessions and their oldest requests",
                          options, list_sessions);
  CLI::Option* const node =
      listing->add_option("--node", options->node, "List the sessions of this node only")
          ->check(CLI::NonNegativeNumber);
  add_connect_options(*listing, options->remote)->excludes(node);
  add_json_option(*listing, options->json);
  CLI::App* killing =
      add_cluster_command(*group, invocation, "kill", "End sessions", options, kill_sessions);
  add_json_option(*killing, options->json);
  CLI::Option* names = killing->add_option("SESSION", options->sessions,
                                           "Sessions to end, each as NODE/SESSION: 0/3");
  CLI::Option* const all =
      killing->add_flag("--all", options->all, "End all sessions of all nodes")->excludes(names);
  // The command itself has a session over the network.
  add_connect_options(*killing, options->remote)->excludes(all);
}

}  // namespace atolldb::cli
