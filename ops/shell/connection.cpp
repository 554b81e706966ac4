#include "ops/shell/connection.h"

#include <span>
#include <utility>

#include "ops/shell/execute.h"
#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/memory/state_names.h"
#include "shared/network/wire.h"

namespace atolldb::shell {
namespace {

StorageEntry entry_of_json(const Json& storage) {
  return {storage.value("name", ""), storage_type(storage.value("type", "")),
          storage.value("payload_bytes", uint64_t{0}), storage.value("record_count", uint64_t{0})};
}

/// Returns an exit code of `atoll`, or `failed` if the number is none.
ExitCode exit_code_of(const Json& code) {
  if (!code.is_number_integer()) return ExitCode::failed;
  const auto number = code.get<int64_t>();
  const bool is_known = (number > 0 && number <= static_cast<int64_t>(ExitCode::condition)) ||
                        number == static_cast<int64_t>(ExitCode::config);
  return is_known ? static_cast<ExitCode>(number) : ExitCode::failed;
}

}  // namespace

Error error_of_reply(const std::string& operation, const SessionReply& reply) {
  const Json body = parse_json(reply.output);
  const auto code = body.is_object() ? body.find("code") : body.end();
  if (code == body.end()) return error_of(operation, reply.status, reply.message);
  const auto message = body.find("message");
  const bool has_text = message != body.end() && message->is_string();
  return {exit_code_of(*code),
          has_text ? message->get<std::string>() : operation + ": the node gives no reason"};
}

Result<Json> whole_list(const std::function<Result<Json>(const Json& body)>& ask, const char* list,
                        const char* key) {
  Json entries = Json::array();
  Json body = Json::object();
  for (bool has_more = true; has_more;) {
    ATOLL_ASSIGN(const Json answer, ask(body));
    const Json part = answer.value(list, Json::array());
    const size_t before = entries.size();
    for (const Json& each : part) {
      if (each.is_object()) entries.push_back(each);
    }
    // A part without entries ends the list, even if the node says that there are more.
    has_more = answer.value("more", Json()) == true && entries.size() > before;
    if (has_more) body["after"] = entries.back().value(key, Json());
  }
  return entries;
}

Connection::Connection(ConnectionTarget target, std::string cluster, Isolation isolation,
                       CallCoordinator call)
    : target_(std::move(target)),
      cluster_(std::move(cluster)),
      isolation_(isolation),
      call_(std::move(call)) {}

Result<std::unique_ptr<Connection>> Connection::open(const Config& config, uint32_t node,
                                                     Isolation isolation, CallCoordinator call) {
  if (node >= config.nodes.size()) {
    return make_error(ExitCode::usage, "--node " + std::to_string(node) + ": cluster \"" +
                                           config.cluster.name + "\" has nodes 0 to " +
                                           std::to_string(config.nodes.size() - 1));
  }
  ConnectionTarget target;
  target.run_dir = config.cluster.run_dir;
  target.node = node;
  target.connect_timeout = kPatience;
  std::unique_ptr<Connection> connection(
      new Connection(std::move(target), config.cluster.name, isolation, std::move(call)));
  ATOLL_TRY(connection->session());
  return connection;
}

Result<std::unique_ptr<Connection>> Connection::open_network(ConnectionTarget target,
                                                             Isolation isolation) {
  CHECK(target.network.has_value());
  std::unique_ptr<Connection> connection(new Connection(std::move(target), "", isolation, {}));
  ATOLL_TRY(connection->session());
  return connection;
}

std::string Connection::name() const {
  if (!target_.network) return "Cluster \"" + cluster_ + "\"";
  return "Node " + target_.network->host + ":" + std::to_string(target_.network->port);
}

Result<ClientTransport*> Connection::session() {
  if (session_ != nullptr && session_->is_open()) return session_.get();
  session_.reset();
  catalog_.clear();
  ATOLL_ASSIGN(session_, connect_to(target_, target_.connect_timeout, isolation_));
  return session_.get();
}

Result<Json> Connection::call(ControlOperation operation, const Json& body) {
  return call_ == nullptr ? call_over_session(operation, body) : call_(operation, body);
}

Result<Json> Connection::call_over_session(ControlOperation operation, const Json& body) {
  ATOLL_ASSIGN(ClientTransport * open_session, session());
  const std::string procedure =
      std::string(kAdministrationPrefix) + std::string(to_string(operation));
  const std::string input = body.dump();
  const SessionReply reply = open_session->call(procedure, std::as_bytes(std::span(input)));
  if (reply.status != Status::ok) {
    return std::unexpected(error_of_reply(std::string(to_string(operation)), reply));
  }
  Json answer = parse_json(reply.output);
  if (answer.is_object()) return answer;
  return make_error(ExitCode::failed, procedure +
                                          ": the answer is no JSON: use programs of one "
                                          "version");
}

Result<StorageEntry> Connection::storage(const std::string& name) {
  // Another client may drop a storage, and create one of another type with the same name.
  const auto now = std::chrono::steady_clock::now();
  if (now - catalog_read_at_ > kCatalogAge) catalog_.clear();
  const auto known = catalog_.find(name);
  if (known != catalog_.end()) return known->second;
  ATOLL_ASSIGN(const Json answer, call(ControlOperation::storage_describe, {{"name", name}}));
  if (catalog_.empty()) catalog_read_at_ = now;
  return catalog_.emplace(name, entry_of_json(answer)).first->second;
}

Result<std::vector<StorageEntry>> Connection::storages() {
  std::vector<StorageEntry> entries;
  catalog_.clear();
  catalog_read_at_ = std::chrono::steady_clock::now();
  const auto ask = [this](const Json& body) { return call(ControlOperation::storage_list, body); };
  ATOLL_ASSIGN(const Json storages, whole_list(ask, "storages", "name"));
  for (const Json& storage : storages) {
    entries.push_back(entry_of_json(storage));
    catalog_.emplace(entries.back().name, entries.back());
  }
  return entries;
}

Result<uint32_t> Connection::newest_snapshot() {
  ATOLL_ASSIGN(const Json status, call(ControlOperation::status, Json::object()));
  const auto newest = status.value("snapshots", Json::object()).value("newest", uint32_t{0});
  if (newest != 0) return newest;
  return make_error(ExitCode::failed,
                    "snapshots: there is none yet: take one with `atoll snapshot take`");
}

}  // namespace atolldb::shell
