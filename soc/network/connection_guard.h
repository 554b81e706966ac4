// Limits of the connections of the network port. ZeroMQ limits neither their number, nor the parts
// of a message, which it keeps until the last one has arrived. So a client could use up the memory
// of the node, or its descriptors, without one message that the gateway sees.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "shared/base/unique_fd.h"

namespace atolldb {

/// ZeroMQ owns the connections and reports their begins and ends. The guard duplicates their
/// descriptors, so that it can count what has arrived and shut them down. The kernel may reuse the
/// number of ZeroMQ's descriptor; the duplicate still names the same connection.
/// Thread: the gateway's.
class ConnectionGuard {
 public:
  /// Twice the number of sessions: one half may still be without a session.
  static constexpr size_t kMaxConnections = 512;
  /// How long a connection may have no session.
  static constexpr std::chrono::seconds kMaxWithoutSession{5};
  /// Bytes of one connection that have arrived since the last check that found a whole message, and
  /// bytes of all. More than ZeroMQ and the kernel keep of whole messages: 5 frames of 512 KiB, and
  /// the buffer of the connection.
  ///
  /// The limits count bytes of the connection, not memory. Without keys, an empty part has 2 bytes
  /// there, and takes 64 bytes of ZeroMQ's memory. Clients without keys may do everything anyway.
  static constexpr uint64_t kMaxUnfinishedBytes = 32u << 20;
  static constexpr uint64_t kMaxUnfinishedBytesOfAll = 512u << 20;
  /// Bytes of heartbeats are no part of a message, but the guard cannot tell them apart. So it
  /// subtracts this rate from the count: a client with keys sends 82 bytes per 5 s. A client that
  /// sends parts as slowly gains 5.3 MiB per day. An idle time gives no credit for later bytes.
  static constexpr uint64_t kHeartbeatBytesPerSecond = 64;
  /// Time between two checks while there are connections.
  static constexpr std::chrono::milliseconds kPause{100};

  /// `port`: the port that accepts the connections.
  explicit ConnectionGuard(uint16_t port) : port_(port) {}
  ConnectionGuard(const ConnectionGuard&) = delete;
  ConnectionGuard& operator=(const ConnectionGuard&) = delete;

  bool is_empty() const { return connections_.empty(); }
  size_t size() const { return connections_.size(); }

  /// ZeroMQ has accepted a connection. Past kMaxConnections, the oldest connection without a
  /// session is shut down. If all have sessions, the new one is. The new one is also shut down if
  /// the process has no descriptor left for the duplicate.
  void record_accepted(int fd, uint64_t now_ns);
  /// ZeroMQ is about to close the connection, or has closed it.
  void record_ended(int fd);
  /// A whole message of the connection has arrived.
  void record_message(int fd);
  /// The connection has a session now.
  void record_session(int fd);
  /// The session of the connection has ended. The connection may open another one.
  void record_no_session(int fd, uint64_t now_ns);
  /// Shuts the connection down. ZeroMQ notices that, and reports its end.
  void shut_down(int fd);

  /// Returns whether kPause has passed since the last check.
  bool is_due(uint64_t now_ns) const;
  /// Shuts down the connections that are past a limit.
  void check(uint64_t now_ns);
  /// Returns how many connections were shut down because of a limit.
  uint64_t refused() const { return refused_; }
  /// Returns how many of these found no descriptor.
  uint64_t without_descriptor() const { return without_descriptor_; }

 private:
  struct Connection {
    UniqueFd socket;                        // duplicate of ZeroMQ's descriptor
    uint64_t without_session_since_ns = 0;  // 0: it has a session
    uint64_t counted_ns = 0;                // time of the last check
    uint64_t received = 0;                  // bytes that had arrived at the last check
    uint64_t unfinished = 0;   // bytes since the last whole message, less those of heartbeats
    bool had_message = false;  // since the last check
    bool is_shut_down = false;
  };

  Connection* find(int fd);
  Connection* oldest_without_session();
  /// Shuts the connection down, if it is not.
  static void close(Connection& connection);
  /// Closes the connection because of a limit.
  void refuse(Connection& connection);

  const uint16_t port_;
  std::unordered_map<int, Connection> connections_;  // by ZeroMQ's descriptor
  uint64_t checked_ns_ = 0;
  uint64_t refused_ = 0;
  uint64_t without_descriptor_ = 0;
};

}  // namespace atolldb
