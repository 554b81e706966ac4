// Connection strings: which node of which cluster, and how.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/base/isolation.h"
#include "shared/client/client_transport.h"
#include "shared/client/network_link.h"
#include "shared/session/session_layout.h"

namespace atolldb {

/// Target of a connection: a run folder, or an address on the network.
struct ConnectionTarget {
  std::string run_dir;                    // absolute; empty with `network`
  std::optional<NetworkAddress> network;  // of a node's network port
  uint32_t node = 0;                      // only with `run_dir`
  bool names_node = false;                // the text has the parameter `node`
  std::chrono::milliseconds connect_timeout{10'000};
  AnswerAt answer_at = AnswerAt::durable;
};

/// Longest wait for a cluster: a day.
inline constexpr std::chrono::milliseconds kMaxConnectTimeout{86'400'000};

/// Parses `atoll:NAME?...`, `atoll:///run/folder?...` or `atoll+tcp://HOST:PORT?...`
/// (atoll_client.h). Error: usage. It names the part that is wrong, and what is
/// expected.
Result<ConnectionTarget> parse_connection_string(std::string_view text);

/// Returns the text with all bytes escaped that may have a meaning in a connection string.
std::string escape_percent(std::string_view text);

/// Connects, at most for `patience`. Errors: those of connect_until_running. `isolation`: level of
/// the requests that the node must run.
Result<std::unique_ptr<ClientTransport>> connect_to(const ConnectionTarget& target,
                                                    std::chrono::milliseconds patience,
                                                    Isolation isolation = Isolation::serializable);

}  // namespace atolldb
