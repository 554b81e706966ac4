// Options of the clients of a benchmark, and their checks.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "shared/base/error.h"

namespace atolldb::bench {

/// What runs the transactions: jobs on the workers, or clients in this process.
struct ClientOptions {
  std::string client = "node";          // "node": jobs; "local" or "network": clients with sessions
  uint32_t clients = 0;                 // 0: one per worker
  uint32_t pipeline = 64;               // requests in flight of each client
  std::string acknowledge = "durable";  // when a request counts: "durable" or "visible"
  std::string key_file;                 // keys of network clients; empty: without keys
  double think_ms = 0;  // mean time from an answer to the next request of its terminal; 0: none

  bool is_used() const { return client != "node"; }
  bool is_network() const { return client == "network"; }
  static constexpr uint32_t kMaxPipeline = 256;
  static constexpr double kMaxThinkMs = 60'000;
  static constexpr uint32_t kMaxClientsPerNode = 60;  // a node has 64 local sessions
};

/// Chooses the kind of client if none is given. Returns a usage error if another kind is given than
/// `is_connected` needs: the nodes are reached over the network only.
Result<void> choose_client(std::string_view command, bool is_connected, ClientOptions& options);

/// Checks the options that do not depend on the cluster. Returns usage errors.
Result<void> check_clients(std::string_view command, const ClientOptions& options);
/// Checks the number of clients against the number of nodes.
Result<void> check_client_count(std::string_view command, const ClientOptions& options,
                                uint32_t nodes);

/// Returns the line of a report about the clients, or "" without clients.
std::string clients_text(const ClientOptions& options, uint32_t workers);
/// Adds the options to the member `config` of a report.
void put_clients(const ClientOptions& options, nlohmann::json& config);

}  // namespace atolldb::bench
