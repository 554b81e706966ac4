#include "shared/session/session_socket.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>

#include "shared/base/check.h"
#include "shared/base/path_errors.h"
#include "shared/base/try.h"
#include "shared/base/unique_fd.h"
#include "shared/session/session_layout.h"

namespace atolldb {
namespace {

constexpr int kType = SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK;
constexpr size_t kDescriptors = 2;
constexpr size_t kControlBytes = CMSG_SPACE(kDescriptors * sizeof(int));

std::unexpected<Error> socket_error(const std::string& what, ExitCode code = ExitCode::resources) {
  return make_error(code, what + ": " + std::strerror(errno));
}

/// Returns false if the path is too long.
bool set_path(sockaddr_un& address, const std::string& path) {
  address = {};
  address.sun_family = AF_UNIX;
  CHECK(!path.empty());  // for an empty path the kernel would choose a name
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

std::unexpected<Error> too_long(const std::string& path) {
  return make_error(ExitCode::config, "session socket " + path + ": its path has " +
                                          std::to_string(path.size()) + " bytes, more than " +
                                          std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                                          ": set a shorter cluster.run_dir");
}

/// Takes the descriptors of a message. Closes any beyond the expected ones.
SessionDescriptors take_descriptors(msghdr& message) {
  SessionDescriptors taken;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    CHECK(part->cmsg_len >= CMSG_LEN(0));
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      UniqueFd owned(fd);
      if (!taken.segment.is_open()) {
        taken.segment = std::move(owned);
      } else if (!taken.wake.is_open()) {
        taken.wake = std::move(owned);
      }
    }
  }
  return taken;
}

/// Waits until the socket is readable, and continues after signals.
bool await_readable(int socket, std::chrono::milliseconds timeout) {
  CHECK(socket >= 0);
  CHECK(timeout.count() >= 0);
  const auto end = std::chrono::steady_clock::now() + timeout;
  pollfd readable{socket, POLLIN, 0};
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    const int ready = poll(&readable, 1, static_cast<int>(std::max<int64_t>(left.count(), 0)));
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

Result<UniqueFd> listen_for_sessions(const std::string& path) {
  sockaddr_un address;
  if (!set_path(address, path)) return too_long(path);
  UniqueFd fd(socket(AF_UNIX, kType, 0));
  unlink(path.c_str());
  if (!fd.is_open() ||
      bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return socket_error("session socket " + path);
  }
  return fd;
}

Result<UniqueFd> connect_to_sessions(const std::string& path) {
  sockaddr_un address;
  if (!set_path(address, path)) return too_long(path);
  // The socket is blocking, so `connect` waits while the backlog is full.
  UniqueFd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd.is_open()) return socket_error("session socket " + path);
  const auto connected = uninterrupted([&] {
    return connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  });
  if (connected != 0) {
    return socket_error("session socket " + path + ": no node listens there: start the cluster",
                        ExitCode::not_running);
  }
  ATOLL_TRY(check_peer(fd.get(), "session socket " + path));
  return fd;
}

Result<std::pair<UniqueFd, UniqueFd>> session_socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, kType, 0, ends) != 0) return socket_error("session: socketpair");
  CHECK(ends[0] >= 0 && ends[1] >= 0);
  return std::pair(UniqueFd(ends[0]), UniqueFd(ends[1]));
}

bool send_welcome(int socket, const SessionWelcome& welcome,
                  const SessionDescriptors* descriptors) {
  CHECK(socket >= 0);
  iovec bytes{const_cast<SessionWelcome*>(&welcome), sizeof(welcome)};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (descriptors != nullptr) {
    CHECK(descriptors->segment.is_open() && descriptors->wake.is_open());
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    cmsghdr* part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(kDescriptors * sizeof(int));
    const int fds[kDescriptors] = {descriptors->segment.get(), descriptors->wake.get()};
    std::memcpy(CMSG_DATA(part), fds, sizeof(fds));
  }
  return sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL) == sizeof(welcome);
}

Result<SessionDescriptors> receive_welcome(int socket, int timeout_ms) {
  if (!await_readable(socket, std::chrono::milliseconds(timeout_ms))) {
    return make_error(ExitCode::not_running, "session: the node does not answer within " +
                                                 std::to_string(timeout_ms) +
                                                 " ms: run `atoll status`");
  }
  SessionWelcome welcome{};
  iovec bytes{&welcome, sizeof(welcome)};
  alignas(cmsghdr) char control[kControlBytes] = {};
  msghdr message{};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (got == 0 || (got < 0 && errno == ECONNRESET)) {
    return make_error(ExitCode::not_running,
                      "session: the node has closed the connection: run `atoll status`");
  }
  if (got < 0) return socket_error("session: welcome");
  SessionDescriptors descriptors = take_descriptors(message);
  if (got != sizeof(welcome) || welcome.magic != kSessionMagic) {
    return make_error(ExitCode::failed,
                      "session: the process that listens there is no node: run `atoll status`");
  }
  if (welcome.layout_version != kSessionLayoutVersion ||
      (welcome.refused == 0 && welcome.segment_bytes != kSessionSegmentBytes)) {
    return make_error(ExitCode::failed,
                      "session: the node has layout version " +
                          std::to_string(welcome.layout_version) + ", this program has " +
                          std::to_string(kSessionLayoutVersion) +
                          ": use programs of one build, and start the cluster again");
  }
  if (welcome.refused != 0) {
    welcome.message[sizeof(welcome.message) - 1] = 0;
    return make_error(ExitCode::resources, welcome.message);
  }
  if (!descriptors.segment.is_open() || !descriptors.wake.is_open()) {
    return make_error(ExitCode::resources,
                      "session: its descriptors did not arrive: raise `ulimit -n`");
  }
  return descriptors;
}

SessionPeer session_peer(int socket) {
  CHECK(socket >= 0);
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) return {};
  CHECK(length == sizeof(credentials));
  if (credentials.pid <= 0 || credentials.pid == getpid()) return {};
  SessionPeer peer{credentials.pid, credentials.uid, {}};
  std::ifstream file("/proc/" + std::to_string(peer.pid) + "/comm", std::ios::binary);
  peer.program.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  if (peer.program.ends_with('\n')) peer.program.pop_back();
  return peer;
}

bool peer_is_gone(int socket) {
  CHECK(socket >= 0);
  pollfd events{socket, POLLIN | POLLRDHUP, 0};
  return uninterrupted([&] { return poll(&events, 1, 0); }) > 0 &&
         (events.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

Result<UniqueFd> create_session_file(const std::string& name, uint64_t bytes) {
  CHECK(!name.empty());
  CHECK(bytes > 0 && bytes % 4096 == 0);
  UniqueFd fd(memfd_create(("atoll." + name).c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (!fd.is_open() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return socket_error("segment " + name + " of " + std::to_string(bytes >> 20) +
                        " MiB: check memory and `ulimit -n`");
  }
  return fd;
}

}  // namespace atolldb
