// Unix socket of a session. It transfers the descriptors once. After that, it only shows to each
// side whether the other has closed it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "shared/base/error.h"
#include "shared/base/unique_fd.h"

namespace atolldb {

inline constexpr uint64_t kSessionMagic = 0x5345534c4c4f5441ull;  // "ATOLLSES"

/// The only message of a connection, sent by the node. If `refused` is 0, the descriptors of the
/// segment and of the eventfd that wakes the node come with it.
struct SessionWelcome {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t refused;
  uint64_t segment_bytes;
  char message[232];  // reason of the refusal; ends with a zero byte
};
static_assert(sizeof(SessionWelcome) == 256);

/// The process that has connected a socket, as it was when the connection was made.
struct SessionPeer {
  pid_t pid = 0;        // 0: this process, or a process that this one cannot see
  uid_t user = 0;       // valid if pid is not 0
  std::string program;  // content of /proc/PID/comm, which may be any bytes; empty: unknown
};

struct SessionDescriptors {
  UniqueFd segment;
  UniqueFd wake;
};

/// Returns a non-blocking listening socket. Replaces an existing file of that name. REQUIRES: the
/// folder belongs to the cluster, so that no other user can connect.
Result<UniqueFd> listen_for_sessions(const std::string& path);
/// Returns a connected socket, or not_running if no process listens there.
Result<UniqueFd> connect_to_sessions(const std::string& path);
/// Returns both ends of a connection within this process: first the node's, then the client's.
Result<std::pair<UniqueFd, UniqueFd>> session_socket_pair();

/// Sends the welcome without blocking. `descriptors`: null for a refusal. Returns false if the
/// welcome was not sent, for example because the peer has closed its end.
bool send_welcome(int socket, const SessionWelcome& welcome, const SessionDescriptors* descriptors);
/// Waits for the welcome, at most `timeout_ms`. Checks it and the number of descriptors.
Result<SessionDescriptors> receive_welcome(int socket, int timeout_ms);

/// Returns the process at the client's end of the connection.
SessionPeer session_peer(int socket);

/// Returns whether the other end is closed. Never blocks.
bool peer_is_gone(int socket);

/// Creates a file of `bytes` zero bytes that can neither shrink nor grow.
Result<UniqueFd> create_session_file(const std::string& name, uint64_t bytes);

}  // namespace atolldb
