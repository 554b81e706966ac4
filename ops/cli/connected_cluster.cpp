#include "ops/cli/connected_cluster.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "bench/driver/session_transport.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/network/wire.h"

namespace atolldb::cli {
namespace {

/// Pause between two questions whether a job has ended.
constexpr std::chrono::milliseconds kJobPause{50};

std::string place_text(const ConnectionTarget& target) {
  return target.network->host + ":" + std::to_string(target.network->port);
}

/// Returns the config of a cluster as far as its status tells it.
Config config_of_status(const Json& status) {
  Config config = default_config();
  config.cluster.name = status.value("name", "");
  const Json nodes = status.value("nodes", Json::array());
  config.nodes.resize(nodes.size(), config.nodes.front());
  for (size_t node = 0; node < nodes.size(); ++node) {
    config.nodes[node].workers = nodes[node].value("workers", uint32_t{0});
  }
  return config;
}

}  // namespace

ConnectedCluster::ConnectedCluster(Config config, std::vector<Member> members)
    : Cluster(std::move(config)),
      members_(std::move(members)),
      durability_(members_.front().status.value("durability", "unknown")),
      may_run_jobs_(std::ranges::all_of(members_, &Member::may_run_jobs)) {}

Result<ConnectedCluster::Member> ConnectedCluster::connect_member(const ConnectionTarget& target) {
  CHECK(target.network.has_value());
  Member member;
  member.target = target;
  ATOLL_ASSIGN(member.connection, shell::Connection::open_network(target, Isolation::serializable));
  ATOLL_ASSIGN(member.status, member.connection->call(ControlOperation::status, Json::object()));
  ATOLL_ASSIGN(ClientTransport* const session, member.connection->session());
  member.node = session->node();
  member.may_run_jobs = session->may_run_jobs();
  return member;
}

Result<std::unique_ptr<ConnectedCluster>> ConnectedCluster::connect(
    const std::vector<ConnectionTarget>& targets, const std::string& command) {
  CHECK(!targets.empty());
  std::vector<Member> members;
  for (const ConnectionTarget& target : targets) {
    ATOLL_ASSIGN(Member member, connect_member(target));
    members.push_back(std::move(member));
  }
  std::ranges::sort(members, {}, &Member::node);
  const Json& status = members.front().status;
  Config config = config_of_status(status);
  const size_t nodes = config.nodes.size();
  if (nodes == 0) {
    return make_error(ExitCode::failed, command + ": --connect " +
                                            place_text(members.front().target) +
                                            ": the node does not name the nodes of its cluster: "
                                            "use programs of one version");
  }
  for (size_t i = 0; i < std::max(nodes, members.size()); ++i) {
    if (i < members.size() && members[i].status.value("uuid", "") != status.value("uuid", "")) {
      return make_error(ExitCode::usage, command + ": --connect " + place_text(members[i].target) +
                                             ": is a node of another cluster than " +
                                             place_text(members.front().target) +
                                             ": name the nodes of one cluster");
    }
    if (i < members.size() && members[i].node == i) continue;
    const size_t named = i < members.size() && members[i].node < i ? members[i].node : i;
    return make_error(ExitCode::usage,
                      command + ": cluster \"" + config.cluster.name + "\" has " +
                          std::to_string(nodes) + " nodes, and --connect names node " +
                          std::to_string(named) + (named == i ? " never" : " twice") +
                          ": give --connect once for each node");
  }
  return std::unique_ptr<ConnectedCluster>(
      new ConnectedCluster(std::move(config), std::move(members)));
}

Result<Json> ConnectedCluster::ask(uint32_t node, ControlOperation operation, const Json& body) {
  const std::lock_guard guard(mutex_);
  return members_[node].connection->call(operation, body);
}

Result<Json> ConnectedCluster::ask_for_list(uint32_t node, ControlOperation operation,
                                            const char* list, const char* key) {
  const auto ask_part = [&](const Json& part) { return ask(node, operation, part); };
  ATOLL_ASSIGN(Json entries, shell::whole_list(ask_part, list, key));
  return Json{{list, std::move(entries)}};
}

Result<Json> ConnectedCluster::state_of_job(uint32_t node, const Json& body) {
  bool is_done = false;
  const auto ask_part = [&](const Json& part) -> Result<Json> {
    Json question = part;
    question["job"] = body.value("job", uint64_t{0});
    ATOLL_ASSIGN(Json answer, ask(node, ControlOperation::job_wait, question));
    is_done = answer.value("done", false);
    return answer;
  };
  ATOLL_ASSIGN(Json outputs, shell::whole_list(ask_part, "outputs", "worker"));
  // The node answers at once, because a request that waited would delay those of other clients.
  if (!is_done) std::this_thread::sleep_for(kJobPause);
  return Json{{"done", is_done}, {"outputs", std::move(outputs)}};
}

Result<Json> ConnectedCluster::call(uint32_t node, ControlOperation operation, const Json& body,
                                    std::chrono::milliseconds /*timeout*/) {
  if (node >= members_.size()) return no_such_node(node);
  if (operation == ControlOperation::job_wait) return state_of_job(node, body);
  return ask(node, operation, body);
}

Result<Json> ConnectedCluster::coordinator(ControlOperation operation, const Json& body,
                                           std::chrono::milliseconds /*timeout*/) {
  if (operation == ControlOperation::storage_list) {
    return ask_for_list(0, operation, "storages", "name");
  }
  return ask(0, operation, body);
}

Result<std::unique_ptr<SessionClient>> ConnectedCluster::connect_session(uint32_t node) {
  return make_error(ExitCode::usage, "node " + std::to_string(node) +
                                         ": is reached over the network, and has no session "
                                         "through shared memory: use --client network");
}

Result<std::unique_ptr<ClientTransport>> ConnectedCluster::open_session(uint32_t node) const {
  CHECK(node < members_.size());
  const ConnectionTarget& target = members_[node].target;
  return connect_to(target, target.connect_timeout);
}

Result<std::unique_ptr<bench::Transport>> ConnectedPort::connect(
    uint32_t node, const bench::ClientRoute& /*route*/) {
  ATOLL_ASSIGN(auto session, connected_.open_session(node));
  return std::make_unique<bench::SessionTransport>(std::move(session), kMaxNetworkInFlight);
}

}  // namespace atolldb::cli
