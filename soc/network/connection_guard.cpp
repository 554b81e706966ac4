#include "soc/network/connection_guard.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr uint64_t guard_ns(std::chrono::nanoseconds time) {
  return static_cast<uint64_t>(time.count());
}

/// Returns the bytes that count as heartbeats of a time.
constexpr uint64_t heartbeat_bytes(uint64_t ns) {
  constexpr uint64_t kNsPerMs = 1'000'000;
  return ns / kNsPerMs * ConnectionGuard::kHeartbeatBytesPerSecond / 1'000;
}

/// Returns whether `fd` is a TCP socket of the local port. ZeroMQ reports a connection some time
/// after it has accepted it, so the descriptor may be that of another file by now.
bool is_connection_of_port(int fd, uint16_t port) {
  int protocol = 0;
  socklen_t bytes = sizeof(protocol);
  if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes) != 0) return false;
  sockaddr_storage address{};
  bytes = sizeof(address);
  if (protocol != IPPROTO_TCP ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes) != 0) {
    return false;
  }
  const in_port_t local = address.ss_family == AF_INET6
                              ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                              : reinterpret_cast<const sockaddr_in&>(address).sin_port;
  return ntohs(local) == port;
}

/// Returns the bytes that have arrived over the connection, with those that wait in the kernel.
uint64_t bytes_received(int fd) {
  tcp_info info{};
  socklen_t bytes = sizeof(info);
  // An error means that the kernel has no such counter. Then nothing is limited.
  if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) != 0) return 0;
  return info.tcpi_bytes_received;
}

}  // namespace

ConnectionGuard::Connection* ConnectionGuard::find(int fd) {
  const auto place = connections_.find(fd);
  return place == connections_.end() ? nullptr : &place->second;
}

ConnectionGuard::Connection* ConnectionGuard::oldest_without_session() {
  Connection* oldest = nullptr;
  for (auto& [fd, connection] : connections_) {
    const uint64_t since = connection.without_session_since_ns;
    if (since == 0 || connection.is_shut_down) continue;
    if (oldest == nullptr || since < oldest->without_session_since_ns) oldest = &connection;
  }
  return oldest;
}

void ConnectionGuard::record_accepted(int fd, uint64_t now_ns) {
  CHECK(now_ns != 0);
  if (!is_connection_of_port(fd, port_)) return;  // it has ended
  UniqueFd socket(fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (!socket.is_open()) {
    // No descriptor is left. A connection that the guard cannot limit must not stay.
    if (errno != EMFILE) return;
    ::shutdown(fd, SHUT_RDWR);
    ++refused_;
    ++without_descriptor_;
    return;
  }
  if (!is_connection_of_port(socket.get(), port_)) return;  // it has ended since
  Connection added;
  added.socket = std::move(socket);
  added.without_session_since_ns = now_ns;
  added.counted_ns = now_ns;
  size_t open = 0;
  for (const auto& [other, connection] : connections_) open += connection.is_shut_down ? 0 : 1;
  if (open >= kMaxConnections) {
    Connection* const oldest = oldest_without_session();
    refuse(oldest == nullptr ? added : *oldest);
  }
  connections_.insert_or_assign(fd, std::move(added));
}

void ConnectionGuard::record_ended(int fd) { connections_.erase(fd); }

void ConnectionGuard::record_message(int fd) {
  if (Connection* const connection = find(fd)) connection->had_message = true;
}

void ConnectionGuard::record_session(int fd) {
  if (Connection* const connection = find(fd)) connection->without_session_since_ns = 0;
}

void ConnectionGuard::record_no_session(int fd, uint64_t now_ns) {
  CHECK(now_ns != 0);
  if (Connection* const connection = find(fd)) connection->without_session_since_ns = now_ns;
}

void ConnectionGuard::shut_down(int fd) {
  if (Connection* const connection = find(fd)) close(*connection);
}

void ConnectionGuard::close(Connection& connection) {
  DCHECK(connection.socket.is_open());
  if (!std::exchange(connection.is_shut_down, true)) {
    ::shutdown(connection.socket.get(), SHUT_RDWR);
  }
}

void ConnectionGuard::refuse(Connection& connection) {
  DCHECK(!connection.is_shut_down);
  close(connection);
  ++refused_;
}

bool ConnectionGuard::is_due(uint64_t now_ns) const {
  return now_ns - checked_ns_ >= guard_ns(kPause);
}

void ConnectionGuard::check(uint64_t now_ns) {
  checked_ns_ = now_ns;
  uint64_t unfinished_of_all = 0;
  uint64_t most_unfinished = 0;
  Connection* largest = nullptr;
  for (auto& [fd, connection] : connections_) {
    if (connection.is_shut_down) continue;
    const uint64_t received = bytes_received(connection.socket.get());
    uint64_t& unfinished = connection.unfinished;
    unfinished += received - std::exchange(connection.received, received);
    const uint64_t passed_ns = now_ns - std::exchange(connection.counted_ns, now_ns);
    unfinished -= std::min(unfinished, heartbeat_bytes(passed_ns));
    if (std::exchange(connection.had_message, false)) unfinished = 0;
    const uint64_t since = connection.without_session_since_ns;
    const bool is_idle = since != 0 && now_ns - since > guard_ns(kMaxWithoutSession);
    if (is_idle || unfinished > kMaxUnfinishedBytes) {
      refuse(connection);
      continue;
    }
    unfinished_of_all += unfinished;
    if (unfinished > most_unfinished) {
      most_unfinished = unfinished;
      largest = &connection;
    }
  }
  // One connection for each check: its memory must become free before another one is chosen.
  if (unfinished_of_all > kMaxUnfinishedBytesOfAll) refuse(*largest);
}

}  // namespace atolldb
