#include "soc/network/gateway_sockets.h"

#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "shared/base/check.h"
#include "shared/network/unsent_frame.h"

namespace atolldb {
namespace {

constexpr const char* kZapEndpoint = "inproc://zeromq.zap.01";
constexpr const char* kMonitorEndpoint = "inproc://monitor";
constexpr const char* kZapVersion = "1.0";
/// With a domain, ZeroMQ asks for clients without keys, too.
constexpr const char* kZapDomain = "atoll";
/// A client that has not finished its handshake after this time is disconnected. The guard then
/// ends a connection without a session, too.
constexpr int kGatewayHandshakeMs = 5'000;
/// A connection over which the client has not answered for so long has ended.
constexpr int kGatewayHeartbeatMs = 5'000;
constexpr int kGatewayHeartbeatTimeoutMs = 15'000;
/// How long the last answers may take when the node stops.
constexpr int kGatewayLingerMs = 500;
constexpr int kGatewayBacklog = 512;
/// Parts of long outputs are sent to a client until ZeroMQ has this many bytes to write. Its window
/// keeps the connection busy, and a slow client leaves the rest in the node's PayloadMemory.
constexpr size_t kPartsAheadBytes = 512u << 10;
/// Parts of a question of ZeroMQ: version, request id, domain, address, identity, mechanism, and
/// the key.
constexpr size_t kZapParts = 6;

/// Routing ids of clients are numbers that begin at rand(). A client that guessed a later one could
/// take it first, and ZeroMQ would abort the process.
zmq::socket_type router_with_random_ids() {
  unsigned seed = 0;
  CHECK(getrandom(&seed, sizeof(seed), 0) == static_cast<ssize_t>(sizeof(seed)));
  std::srand(seed);
  return zmq::socket_type::router;
}

/// Receives one part of a message without waiting. Returns false if there is none. No exception:
/// a signal may interrupt the call.
bool receive_part(zmq::socket_t& socket, zmq::message_t& part) {
  return zmq_msg_recv(part.handle(), socket.handle(), ZMQ_DONTWAIT) >= 0;
}

/// Returns a literal for an endpoint: an IPv6 address has brackets.
std::string host_of(const std::string& address) {
  return address.find(':') == std::string::npos ? address : "[" + address + "]";
}

}  // namespace

std::string_view NetworkGateway::Received::connection() const {
  // Null without a name, which means that no key was checked.
  const char* const name = zmq_msg_gets(const_cast<zmq::message_t&>(frame).handle(), "User-Id");
  return name == nullptr ? std::string_view() : std::string_view(name);
}

int NetworkGateway::Received::fd() const {
  return zmq_msg_get(const_cast<zmq::message_t&>(frame).handle(), ZMQ_SRCFD);
}

NetworkGateway::Sockets::Sockets()
    : router_(context_, router_with_random_ids()),
      zap_(context_, zmq::socket_type::rep),
      monitor_(context_, zmq::socket_type::pair) {
  zap_.set(zmq::sockopt::linger, 0);
  zap_.bind(kZapEndpoint);
  CHECK(zmq_socket_monitor(router_.handle(), kMonitorEndpoint,
                           ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED |
                               ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL |
                               ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL) == 0);
  monitor_.set(zmq::sockopt::linger, 0);
  monitor_.connect(kMonitorEndpoint);
}

Result<std::string> NetworkGateway::Sockets::bind(const NetworkSettings& settings,
                                                  const CurveKeyPair* keys) {
  const std::string host = host_of(settings.address);
  const std::string port = settings.port == 0 ? "*" : std::to_string(settings.port);
  try {
    router_.set(zmq::sockopt::router_mandatory, true);
    router_.set(zmq::sockopt::linger, kGatewayLingerMs);
    router_.set(zmq::sockopt::sndhwm, kMaxWaitingFrames);
    router_.set(zmq::sockopt::rcvhwm, kMaxUnreadFrames);
    router_.set(zmq::sockopt::maxmsgsize, int64_t{kMaxWireFrameBytes});
    router_.set(zmq::sockopt::handshake_ivl, kGatewayHandshakeMs);
    router_.set(zmq::sockopt::heartbeat_ivl, kGatewayHeartbeatMs);
    router_.set(zmq::sockopt::heartbeat_timeout, kGatewayHeartbeatTimeoutMs);
    router_.set(zmq::sockopt::backlog, kGatewayBacklog);
    router_.set(zmq::sockopt::ipv6, host != settings.address);
    router_.set(zmq::sockopt::zap_domain, kZapDomain);
    if (keys != nullptr) {
      router_.set(zmq::sockopt::curve_server, true);
      router_.set(zmq::sockopt::curve_secretkey,
                  zmq::buffer(keys->secret_key.data(), keys->secret_key.size()));
    }
    router_.bind("tcp://" + host + ":" + port);
    const std::string bound = router_.get(zmq::sockopt::last_endpoint);
    return host + bound.substr(bound.rfind(':'));
  } catch (const zmq::error_t& error) {
    return make_error(ExitCode::resources, "network: " + host + ":" + port +
                                               ": cannot be bound: " + error.what() +
                                               ": change network.listen or network.base_port");
  }
}

NetworkGateway::Sockets::Ready NetworkGateway::Sockets::wait(int wake_fd, int timeout_ms) {
  std::array<zmq_pollitem_t, 5> items{{{router_.handle(), 0, ZMQ_POLLIN, 0},
                                       {zap_.handle(), 0, ZMQ_POLLIN, 0},
                                       {monitor_.handle(), 0, ZMQ_POLLIN, 0},
                                       {nullptr, wake_fd, ZMQ_POLLIN, 0},
                                       {nullptr, file_watch_.fd(), ZMQ_POLLIN, 0}}};
  const int count = file_watch_.is_open() ? 5 : 4;
  if (zmq_poll(items.data(), count, timeout_ms) <= 0) return {};
  return {.zap = items[1].revents != 0,
          .monitor = items[2].revents != 0,
          .key_file = items[4].revents != 0,
          .woken = items[3].revents != 0};
}

bool NetworkGateway::Sockets::receive(Received& received) {
  if (!receive_part(router_, received.routing_id)) return false;
  size_t parts = 1;
  bool has_more = received.routing_id.more();
  while (has_more) {
    zmq::message_t part;
    if (!receive_part(router_, part)) break;
    has_more = part.more();
    ++parts;
    // Frees each part past the second one before it receives the next.
    if (parts == 2) received.frame = std::move(part);
  }
  received.is_whole = parts == 2;
  return true;
}

NetworkGateway::Sockets::Sent NetworkGateway::Sockets::send(
    std::string_view peer, std::span<const std::byte> frame,
    const std::shared_ptr<UnsentBytes>& unsent) {
  CHECK(unsent != nullptr && !frame.empty());
  const size_t of_peer = unsent->bytes.load(std::memory_order_relaxed);
  const size_t of_all = unsent_of_all_->bytes.load(std::memory_order_relaxed);
  if (of_peer + frame.size() > kMaxUnsentBytes || of_all + frame.size() > kMaxUnsentBytesOfAll) {
    return Sent::full;
  }
  if (zmq_send(router_.handle(), peer.data(), peer.size(), ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0) {
    return zmq_errno() == EAGAIN ? Sent::full : Sent::gone;
  }
  auto held = std::make_unique<UnsentFrame>(frame, unsent, unsent_of_all_);
  zmq_msg_t message;
  std::byte* const data = held->bytes.data();
  const bool is_made =
      zmq_msg_init_data(&message, data, frame.size(), UnsentFrame::free, held.get()) == 0;
  CHECK(is_made);  // an error would be a lack of memory
  static_cast<void>(held.release());
  if (zmq_msg_send(&message, router_.handle(), ZMQ_DONTWAIT) >= 0) return Sent::yes;
  zmq_msg_close(&message);
  return Sent::gone;
}

bool NetworkGateway::Sockets::has_room_for_part(const UnsentBytes& unsent) const {
  return unsent.bytes.load(std::memory_order_relaxed) < kPartsAheadBytes;
}

bool NetworkGateway::Sockets::has_room_for_parts() const {
  return unsent_of_all_->bytes.load(std::memory_order_relaxed) < kMaxUnsentBytesOfAll / 2;
}

bool NetworkGateway::Sockets::next_event(Event& event) {
  zmq::message_t message;
  if (!receive_part(monitor_, message)) return false;
  // An event has two parts: its number and value, and the endpoint.
  CHECK(message.size() >= sizeof(event.kind) + sizeof(event.value));
  std::memcpy(&event.kind, message.data(), sizeof(event.kind));
  std::memcpy(&event.value, message.data<char>() + sizeof(event.kind), sizeof(event.value));
  zmq::message_t endpoint;
  if (message.more()) receive_part(monitor_, endpoint);
  return true;
}

bool NetworkGateway::Sockets::next_zap(ZapRequest& request) {
  std::vector<zmq::message_t> parts;
  do {
    parts.emplace_back();
    if (!receive_part(zap_, parts.back())) return false;
  } while (parts.back().more());
  CHECK(parts.size() >= kZapParts && parts[0].to_string_view() == kZapVersion);
  request.request_id = parts[1].to_string();
  request.address = parts[3].to_string();
  request.key.reset();
  if (parts[5].to_string_view() == "CURVE") {
    CHECK(parts.size() == kZapParts + 1 && parts[kZapParts].size() == kCurveKeyBytes);
    std::memcpy(request.key.emplace().data(), parts[kZapParts].data(), kCurveKeyBytes);
  }
  return true;
}

void NetworkGateway::Sockets::answer_zap(const ZapRequest& request, bool is_authorised,
                                         const std::string& connection) {
  const std::array<std::string, 6> parts = {kZapVersion,
                                            request.request_id,
                                            is_authorised ? "200" : "400",
                                            is_authorised ? "OK" : "the key is not authorised",
                                            is_authorised ? connection : "",
                                            ""};
  for (size_t i = 0; i < parts.size(); ++i) {
    const int more = i + 1 < parts.size() ? ZMQ_SNDMORE : 0;
    if (zmq_send(zap_.handle(), parts[i].data(), parts[i].size(), more) < 0) return;
  }
}

}  // namespace atolldb
