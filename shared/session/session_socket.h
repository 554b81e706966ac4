// The Unix socket of a session: carries the descriptors once, and then tells each side when the
// other is gone.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "shared/error.h"
#include "shared/process/unique_fd.h"

namespace atolldb {

inline constexpr uint64_t kSessionMagic = 0x5345534c4c4f5441ull;  // "ATOLLSES"

/// What the node sends as the one message of a connection. When `refused` is 0 the descriptors of
/// the segment and of the eventfd that wakes the node come with it.
struct SessionWelcome {
  uint64_t magic;
  uint32_t layout_version;
  uint32_t refused;
  uint64_t segment_bytes;
  char message[232];  // why it was refused; terminated
};
static_assert(sizeof(SessionWelcome) == 256);

struct SessionDescriptors {
  UniqueFd segment;
  UniqueFd wake;
};

/// A listening socket, not blocking; a file of that name is replaced. REQUIRES: the folder is the
/// cluster's own, so that no other user gets in.
Result<UniqueFd> listen_for_sessions(const std::string& path);
/// A connected socket. not_running when nobody listens there.
Result<UniqueFd> connect_to_sessions(const std::string& path);
/// Both ends of a connection within this process: node's, client's.
Result<std::pair<UniqueFd, UniqueFd>> session_socket_pair();

/// Never blocks. False: the peer is gone.
bool send_welcome(int socket, const SessionWelcome& welcome, const SessionDescriptors* descriptors);
/// Waits for the welcome, at most `timeout_ms`; checks it and the number of descriptors.
Result<SessionDescriptors> receive_welcome(int socket, int timeout_ms);

/// Whether the other end is closed; never blocks.
bool peer_is_gone(int socket);

/// A file of `bytes` zero bytes that can neither shrink nor grow.
Result<UniqueFd> create_session_file(const std::string& name, uint64_t bytes);

}  // namespace atolldb
