// Counters of the network port of a node, in the memory of the node's process.
#pragma once

#include <atomic>
#include <cstdint>

namespace atolldb {

/// Writer: the thread of the network port. All are 0 without one.
struct NetworkMetrics {
  std::atomic<uint64_t> open{0};                 // sessions open now
  std::atomic<uint64_t> opened{0};               // sessions opened since the node began
  std::atomic<uint64_t> refused_limit{0};        // sessions refused because of the session limit
  std::atomic<uint64_t> refused_key{0};          // connections whose key is not authorised
  std::atomic<uint64_t> failed_handshakes{0};    // connections that ended during their handshake
  std::atomic<uint64_t> connections{0};          // connections open now, with or without a session
  std::atomic<uint64_t> connections_refused{0};  // connections closed because of a limit
  std::atomic<uint64_t> unread_limit_bytes{0};   // most unread frames of the open connections
  std::atomic<uint64_t> malformed{0};            // frames that broke the protocol
  std::atomic<uint64_t> dropped{0};   // sessions ended because the client did not read answers
  std::atomic<uint64_t> requests{0};  // requests received
  std::atomic<uint64_t> denied{0};    // requests that their client may not send
  std::atomic<uint64_t> bytes_in{0};  // bytes of frames, before encryption
  std::atomic<uint64_t> bytes_out{0};
  std::atomic<uint64_t> frames_in{0};
  std::atomic<uint64_t> frames_out{0};
};

}  // namespace atolldb
