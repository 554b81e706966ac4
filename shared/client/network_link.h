// The connection of a network client: its ZeroMQ socket, and the handshake with keys.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/error.h"
#include "shared/network/curve_key.h"
#include "shared/network/unsent_frame.h"
#include "shared/network/wire.h"

namespace atolldb {

/// Address of a node's network port, and the keys.
struct NetworkAddress {
  std::string host;  // a name, an IPv4 address, or an IPv6 address in brackets
  uint16_t port = 0;
  std::optional<CurveKey> server_key;  // nothing: without keys, which few nodes allow
  std::string key_file;                // the client's own keys; empty only without `server_key`
};

struct ZmqLibrary;

/// Thread: one at a time.
class NetworkLink {
 public:
  /// What the node has told in its Welcome.
  struct Session {
    uint32_t number = 0;
    uint32_t node = 0;
    uint64_t incarnation = 0;
    uint32_t max_in_flight = 0;
    uint32_t max_in_flight_bytes = 0;
    uint32_t rights = 0;
    std::string key_name;
    uint32_t max_input_bytes = kSessionPartBytes;
    uint32_t max_output_bytes = kSessionPartBytes;
  };

  /// A message that was received. Its bytes are valid until the next `receive`.
  using Frame = std::span<const std::byte>;

  /// Connects, and opens a session. Waits at most `timeout` in all.
  ///
  /// Errors: not_running if no node listens there or it does not answer in time; config if the key
  /// file or ZeroMQ cannot be used; resources if the node has too many sessions; failed if the node
  /// refuses the keys, or has another version.
  static Result<std::unique_ptr<NetworkLink>> open(const NetworkAddress& address,
                                                   std::chrono::milliseconds timeout);
  NetworkLink(const NetworkLink&) = delete;
  NetworkLink& operator=(const NetworkLink&) = delete;
  ~NetworkLink();

  const Session& session() const { return session_; }
  /// Most bytes of parts of long inputs that ZeroMQ holds, because the connection has not taken
  /// them yet. The window keeps the connection busy. The rest waits in the request, so ZeroMQ has
  /// no second copy of it, and short requests overtake it.
  static constexpr size_t kUploadWindowBytes = 1u << 20;

  /// Sends a frame. Does not wait. Returns false if the connection has ended.
  bool send(Frame frame);
  /// Does the same with a Part of an input. REQUIRES: has_room_for_part().
  bool send_part(Frame frame);
  /// Returns whether the next part fits into the window.
  bool has_room_for_part() const {
    return unsent_part_bytes() + kMaxWirePartBytes + kMaxPartHeadBytes <= kUploadWindowBytes;
  }
  /// Returns the size of the parts that the connection has not taken. Thread: any.
  size_t unsent_part_bytes() const { return unsent_parts_->bytes.load(std::memory_order_relaxed); }
  /// Returns the next frame, or nothing if none has arrived.
  std::optional<Frame> receive();
  /// Waits until a frame has arrived, `wake_fd` is readable, or the connection has changed, at most
  /// `timeout_ms`; -1: without limit.
  void wait(int wake_fd, int timeout_ms);
  /// Returns whether the connection has ended.
  bool has_ended();

 private:
  /// Most bytes of a frame with a Part besides those of the part.
  static constexpr size_t kMaxPartHeadBytes = 1024;
  struct Sockets;
  enum class Handshake : uint8_t { pending, done, not_connected, bad_key, bad_protocol, closed };

  explicit NetworkLink(const ZmqLibrary& zmq);
  Result<void> connect(const NetworkAddress& address, std::chrono::milliseconds timeout);
  Result<void> set_keys(const NetworkAddress& address);
  bool set(int option, const void* value, size_t bytes);
  bool set(int option, int value) { return set(option, &value, sizeof(value)); }
  /// Reads the next event of the connection. Returns false if there is none.
  bool next_event(uint16_t& event);
  Handshake await_handshake(std::chrono::steady_clock::time_point until);
  std::unexpected<Error> handshake_error(Handshake handshake, const NetworkAddress& address,
                                         std::chrono::milliseconds timeout) const;
  Result<void> open_session(const std::string& where, std::chrono::steady_clock::time_point until);
  /// Waits until one of the sockets is readable.
  void wait_until(std::chrono::steady_clock::time_point until);

  const ZmqLibrary& zmq_;
  std::unique_ptr<Sockets> sockets_;
  const std::shared_ptr<UnsentBytes> unsent_parts_ = std::make_shared<UnsentBytes>();
  Session session_;
  bool has_ended_ = false;
};

}  // namespace atolldb
