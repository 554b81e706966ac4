#include "ops/shell/connection.h"

#include <utility>

#include "shared/base/try.h"
#include "shared/memory/state_names.h"

namespace atolldb::shell {
namespace {

StorageEntry entry_of_json(const Json& storage) {
  return {storage.value("name", ""), storage_type(storage.value("type", "")),
          storage.value("payload_bytes", uint64_t{0}), storage.value("record_count", uint64_t{0})};
}

}  // namespace

Connection::Connection(const Config& config, uint32_t node, Isolation isolation,
                       CallCoordinator call)
    : config_(config), node_(node), isolation_(isolation), call_(std::move(call)) {}

Result<std::unique_ptr<Connection>> Connection::open(const Config& config, uint32_t node,
                                                     Isolation isolation, CallCoordinator call) {
  if (node >= config.nodes.size()) {
    return make_error(ExitCode::usage, "--node " + std::to_string(node) + ": cluster \"" +
                                           config.cluster.name + "\" has nodes 0 to " +
                                           std::to_string(config.nodes.size() - 1));
  }
  std::unique_ptr<Connection> connection(new Connection(config, node, isolation, std::move(call)));
  ATOLL_TRY(connection->session());
  return connection;
}

Result<SessionClient*> Connection::session() {
  if (session_ != nullptr && session_->is_open()) return session_.get();
  session_.reset();
  catalog_.clear();
  ATOLL_ASSIGN(session_, SessionClient::connect_within(config_.cluster.run_dir, node_, kPatience,
                                                       {}, isolation_));
  return session_.get();
}

Result<StorageEntry> Connection::storage(const std::string& name) {
  // Another client may drop a storage, and create one of another type with the same name.
  const auto now = std::chrono::steady_clock::now();
  if (now - catalog_read_at_ > kCatalogAge) catalog_.clear();
  const auto known = catalog_.find(name);
  if (known != catalog_.end()) return known->second;
  ATOLL_ASSIGN(const Json answer, call_(ControlOperation::storage_describe, {{"name", name}}));
  if (catalog_.empty()) catalog_read_at_ = now;
  return catalog_.emplace(name, entry_of_json(answer)).first->second;
}

Result<std::vector<StorageEntry>> Connection::storages() {
  ATOLL_ASSIGN(const Json answer, call_(ControlOperation::storage_list, Json::object()));
  std::vector<StorageEntry> entries;
  catalog_.clear();
  catalog_read_at_ = std::chrono::steady_clock::now();
  for (const Json& storage : answer.value("storages", Json::array())) {
    entries.push_back(entry_of_json(storage));
    catalog_.emplace(entries.back().name, entries.back());
  }
  return entries;
}

Result<uint32_t> Connection::newest_snapshot() {
  ATOLL_ASSIGN(const Json status, call_(ControlOperation::status, Json::object()));
  const auto newest = status.value("snapshots", Json::object()).value("newest", uint32_t{0});
  if (newest != 0) return newest;
  return make_error(ExitCode::failed,
                    "snapshots: there is none yet: take one with `atoll snapshot take`");
}

}  // namespace atolldb::shell
