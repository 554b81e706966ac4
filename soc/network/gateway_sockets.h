// The sockets of the network port: clients, authentication of keys, and events of connections.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <zmq.hpp>

#include "shared/base/error.h"
#include "shared/network/unsent_frame.h"
#include "soc/network/file_watch.h"
#include "soc/network/gateway.h"

namespace atolldb {

/// A message of a client.
struct NetworkGateway::Received {
  zmq::message_t routing_id;
  zmq::message_t frame;
  bool is_whole = false;  // the message has exactly two parts

  std::string_view peer() const { return routing_id.to_string_view(); }
  std::span<const std::byte> bytes() const { return {frame.data<std::byte>(), frame.size()}; }
  /// Returns the name that the gateway gave the connection when it accepted its key.
  std::string_view connection() const;
  /// Returns the descriptor of the connection, or -1.
  int fd() const;
};

class NetworkGateway::Sockets {
 public:
  enum class Sent : uint8_t { yes, gone, full };
  struct Event {
    uint16_t kind = 0;
    uint32_t value = 0;
  };
  struct Ready {
    bool zap = false;
    bool monitor = false;
    bool key_file = false;
    bool woken = false;
  };
  /// A question whether a key is authorised. The answer repeats `request_id`.
  struct ZapRequest {
    std::string request_id;
    std::string address;
    std::optional<CurveKey> key;  // nothing without keys
  };

  Sockets();
  /// Binds the port. `keys`: null without keys.
  Result<std::string> bind(const NetworkSettings& settings, const CurveKeyPair* keys);
  /// Watches the file of authorised keys. Error: resources.
  Result<void> watch(const std::string& path) { return file_watch_.open(path); }

  /// Waits for a message, an event or the eventfd, at most `timeout_ms`; -1: without limit.
  Ready wait(int wake_fd, int timeout_ms);
  /// Returns false if no message has arrived.
  bool receive(Received& received);
  /// `unsent`: counts the frame until ZeroMQ has written it. Returns `full` if the peer, or all
  /// peers together, would have more unwritten bytes than their limit.
  Sent send(std::string_view peer, std::span<const std::byte> frame,
            const std::shared_ptr<UnsentBytes>& unsent);
  /// Returns whether ZeroMQ has written most of the earlier frames to this peer, so that it may get
  /// the next part of a long output.
  bool has_room_for_part(const UnsentBytes& unsent) const;
  /// Returns whether ZeroMQ has written most of the frames to all peers, so that parts leave room
  /// for other frames.
  bool has_room_for_parts() const;
  bool next_event(Event& event);
  /// Returns false if there is no question. A wrong question is answered with a refusal.
  bool next_zap(ZapRequest& request);
  void answer_zap(const ZapRequest& request, bool is_authorised, const std::string& connection);
  bool has_file_changed() { return file_watch_.has_changed(); }

 private:
  std::shared_ptr<UnsentBytes> unsent_of_all_ = std::make_shared<UnsentBytes>();
  zmq::context_t context_;
  zmq::socket_t router_;
  zmq::socket_t zap_;
  zmq::socket_t monitor_;
  FileWatch file_watch_;
};

}  // namespace atolldb
