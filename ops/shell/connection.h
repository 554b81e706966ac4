// The connection of `atoll kv` and `atoll shell` to a cluster: a session with one node, and the
// catalog.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/shell/statement.h"
#include "shared/base/error.h"
#include "shared/base/isolation.h"
#include "shared/client/client_transport.h"
#include "shared/client/connection_string.h"
#include "shared/config/config.h"
#include "shared/message/control_message.h"

namespace atolldb::shell {

/// Sends a control request to the coordinator (ops/cli/cluster_call.h).
using CallCoordinator = std::function<Result<Json>(ControlOperation operation, const Json& body)>;

/// Returns the error of a control request over the network. The output has the code and the whole
/// text if the request was run. A node of another version may send other members.
Error error_of_reply(const std::string& operation, const SessionReply& reply);

/// Asks for a list, and returns all its entries. A node gives its clients a long list in parts. The
/// question for the next part has the member `key` of the last entry as "after".
Result<Json> whole_list(const std::function<Result<Json>(const Json& body)>& ask, const char* list,
                        const char* key);

/// Thread: one.
class Connection {
 public:
  /// How long `open` and a reconnect wait for the node.
  static constexpr std::chrono::milliseconds kPatience{10'000};
  static constexpr std::chrono::milliseconds kCatalogAge{1'000};

  /// Connects to a node of a cluster on this machine. `isolation`: level of the requests that the
  /// node must run. Errors: those of connect_to; usage if there is no such node.
  static Result<std::unique_ptr<Connection>> open(const Config& config, uint32_t node,
                                                  Isolation isolation, CallCoordinator call);
  /// Connects to the network port of a node. Control requests use the session, too, if the client's
  /// key has the right. REQUIRES: the target is one of the network. Errors: those of connect_to.
  static Result<std::unique_ptr<Connection>> open_network(ConnectionTarget target,
                                                          Isolation isolation);

  /// Returns the session. Connects again if the last one has ended.
  Result<ClientTransport*> session();
  /// Returns an entry of the catalog, at most kCatalogAge old. Error: failed if there is no such
  /// storage.
  Result<StorageEntry> storage(const std::string& name);
  /// Reads the whole catalog.
  Result<std::vector<StorageEntry>> storages();
  /// Removes an entry from the copy of the catalog, because a statement has found it wrong.
  void forget(const std::string& name) { catalog_.erase(name); }
  /// Returns the id of the newest snapshot. Error: failed if there is none.
  Result<uint32_t> newest_snapshot();
  /// Sends a control request on the catalog, or for the status. Error: failed if the client's key
  /// lacks the right; otherwise that of the answer.
  Result<Json> call(ControlOperation operation, const Json& body);
  /// Sets a function that tells whether the user has interrupted the statement. It is called
  /// between replies and while a reply is missing. Without it, nothing interrupts a statement.
  void interrupt_by(std::function<bool()> is_interrupted) {
    is_interrupted_ = std::move(is_interrupted);
  }
  bool is_interrupted() const { return is_interrupted_ != nullptr && is_interrupted_(); }
  /// Returns the cluster, or the address of its node, for the greeting of the shell.
  std::string name() const;

 private:
  Connection(ConnectionTarget target, std::string cluster, Isolation isolation,
             CallCoordinator call);
  Result<Json> call_over_session(ControlOperation operation, const Json& body);

  const ConnectionTarget target_;
  const std::string cluster_;  // its name; empty over the network
  const Isolation isolation_;
  const CallCoordinator call_;  // not set over the network
  std::function<bool()> is_interrupted_;
  std::unique_ptr<ClientTransport> session_;
  std::map<std::string, StorageEntry> catalog_;              // copies of entries
  std::chrono::steady_clock::time_point catalog_read_at_{};  // age of the oldest copy
};

}  // namespace atolldb::shell
