#include "shared/client/network_link.h"

#include <errno.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <thread>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/hex.h"
#include "shared/base/try.h"
#include "shared/network/zmq_library.h"

namespace atolldb {
namespace {

using LinkClock = std::chrono::steady_clock;

constexpr const char* kMonitorEndpoint = "inproc://monitor";
/// How often a handshake is tried that the node has ended without a reason, and the pause between.
constexpr int kHandshakeAttempts = 3;
constexpr std::chrono::milliseconds kHandshakePause{200};
/// How long a socket that closes may take to send the last frame.
constexpr int kLingerMs = 100;
/// A connection over which the node has not answered for so long has ended.
constexpr int kHeartbeatMs = 5'000;
constexpr int kHeartbeatTimeoutMs = 15'000;

std::string text_of(const NetworkAddress& address) {
  return "atoll+tcp://" + address.host + ":" + std::to_string(address.port);
}

int ms_until(LinkClock::time_point until) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - LinkClock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000));
}

}  // namespace

struct NetworkLink::Sockets {
  explicit Sockets(const ZmqLibrary& library) : zmq(library), context(zmq.ctx_new()) {
    zmq.msg_init(&message);
    if (context != nullptr) dealer = zmq.socket(context, ZMQ_DEALER);
    if (dealer == nullptr) return;
    zmq.socket_monitor(dealer, kMonitorEndpoint, ZMQ_EVENT_ALL);
    monitor = zmq.socket(context, ZMQ_PAIR);
    if (monitor != nullptr && zmq.connect(monitor, kMonitorEndpoint) == 0) return;
    if (monitor != nullptr) zmq.close(monitor);
    monitor = nullptr;
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  ~Sockets() {
    zmq.msg_close(&message);
    if (dealer != nullptr) {
      zmq.socket_monitor(dealer, nullptr, 0);
      zmq.close(dealer);
    }
    if (monitor != nullptr) zmq.close(monitor);
    if (context != nullptr) zmq.ctx_term(context);
  }

  const ZmqLibrary& zmq;
  void* context;
  void* dealer = nullptr;
  void* monitor = nullptr;  // null: no context, socket or descriptor is left
  zmq_msg_t message{};
};

NetworkLink::NetworkLink(const ZmqLibrary& zmq)
    : zmq_(zmq), sockets_(std::make_unique<Sockets>(zmq)) {}

NetworkLink::~NetworkLink() = default;

bool NetworkLink::set(int option, const void* value, size_t bytes) {
  return zmq_.setsockopt(sockets_->dealer, option, value, bytes) == 0;
}

Result<void> NetworkLink::set_keys(const NetworkAddress& address) {
  if (!address.server_key) return {};
  ATOLL_ASSIGN(const CurveKeyPair own, read_key_file(address.key_file));
  if (set(ZMQ_CURVE_SERVERKEY, address.server_key->data(), kCurveKeyBytes) &&
      set(ZMQ_CURVE_PUBLICKEY, own.public_key.data(), kCurveKeyBytes) &&
      set(ZMQ_CURVE_SECRETKEY, own.secret_key.data(), kCurveKeyBytes)) {
    return {};
  }
  return make_error(ExitCode::failed, text_of(address) + ": ZeroMQ refuses the keys: " +
                                          zmq_.strerror(zmq_.last_error()));
}

Result<void> NetworkLink::connect(const NetworkAddress& address,
                                  std::chrono::milliseconds timeout) {
  if (sockets_->monitor == nullptr) {
    return make_error(
        ExitCode::resources,
        text_of(address) + ": ZeroMQ: " + zmq_.strerror(zmq_.last_error()) + ": raise `ulimit -n`");
  }
  CHECK(timeout.count() >= 0 && sockets_->dealer != nullptr);
  ATOLL_TRY(set_keys(address));
  const int timeout_ms = ms_until(LinkClock::now() + timeout);
  const auto most = static_cast<int64_t>(kMaxWireFrameBytes);
  // A session ends with its connection, so ZeroMQ must not connect again. The limits of requests in
  // flight bound the queue of frames to send: it has at most max_in_flight_bytes of short inputs,
  // and kUploadWindowBytes of long ones.
  const bool is_set =
      set(ZMQ_RECONNECT_IVL, -1) && set(ZMQ_LINGER, kLingerMs) && set(ZMQ_SNDHWM, 0) &&
      set(ZMQ_IPV6, 1) && set(ZMQ_HANDSHAKE_IVL, timeout_ms) &&
      set(ZMQ_CONNECT_TIMEOUT, timeout_ms) && set(ZMQ_MAXMSGSIZE, &most, sizeof(most)) &&
      set(ZMQ_HEARTBEAT_IVL, kHeartbeatMs) && set(ZMQ_HEARTBEAT_TIMEOUT, kHeartbeatTimeoutMs);
  CHECK(is_set);
  const std::string endpoint = "tcp://" + address.host + ":" + std::to_string(address.port);
  if (zmq_.connect(sockets_->dealer, endpoint.c_str()) == 0) return {};
  return make_error(ExitCode::config, text_of(address) + ": is no address that ZeroMQ can use: " +
                                          zmq_.strerror(zmq_.last_error()));
}

bool NetworkLink::next_event(uint16_t& event) {
  if (zmq_.msg_recv(&sockets_->message, sockets_->monitor, ZMQ_DONTWAIT) < 0) return false;
  // An event has two parts: its number and value, and the endpoint.
  CHECK(zmq_.msg_size(&sockets_->message) >= sizeof(event));
  std::memcpy(&event, zmq_.msg_data(&sockets_->message), sizeof(event));
  while (zmq_.msg_more(&sockets_->message) != 0 &&
         zmq_.msg_recv(&sockets_->message, sockets_->monitor, ZMQ_DONTWAIT) >= 0) {
  }
  return true;
}

void NetworkLink::wait_until(LinkClock::time_point until) {
  std::array<zmq_pollitem_t, 2> items{
      {{sockets_->dealer, 0, ZMQ_POLLIN, 0}, {sockets_->monitor, 0, ZMQ_POLLIN, 0}}};
  zmq_.poll(items.data(), static_cast<int>(items.size()), ms_until(until));
}

NetworkLink::Handshake NetworkLink::await_handshake(LinkClock::time_point until) {
  bool is_connected = false;
  for (;;) {
    uint16_t event = 0;
    while (next_event(event)) {
      switch (event) {
        case ZMQ_EVENT_CONNECTED:
          is_connected = true;
          break;
        case ZMQ_EVENT_HANDSHAKE_SUCCEEDED:
          return Handshake::done;
        case ZMQ_EVENT_HANDSHAKE_FAILED_AUTH:
          return Handshake::bad_key;
        case ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL:
          return Handshake::bad_protocol;
        case ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL:
        case ZMQ_EVENT_DISCONNECTED:
          return Handshake::closed;
        case ZMQ_EVENT_CLOSED:
          if (!is_connected) return Handshake::not_connected;
          break;
        default:
          break;
      }
    }
    if (LinkClock::now() >= until) {
      return is_connected ? Handshake::pending : Handshake::not_connected;
    }
    wait_until(until);
  }
}

std::unexpected<Error> NetworkLink::handshake_error(Handshake handshake,
                                                    const NetworkAddress& address,
                                                    std::chrono::milliseconds timeout) const {
  CHECK(handshake != Handshake::done);
  const std::string where = text_of(address) + ": ";
  const bool has_keys = address.server_key.has_value();
  switch (handshake) {
    case Handshake::not_connected:
      return make_error(ExitCode::not_running,
                        where + "no node listens there: see the ports in `atoll status`");
    case Handshake::pending:
      return make_error(ExitCode::not_running,
                        where + "no answer within " + std::to_string(timeout.count()) +
                            " ms: is it the network port of a node? See `atoll status`");
    case Handshake::bad_key:
      return make_error(ExitCode::failed,
                        where + "the node refuses the key of " + address.key_file +
                            ": add its public key to the node's file of authorised keys "
                            "(network.authorised_keys): `atoll keys show` prints it");
    default:
      break;
  }
  if (!has_keys) {
    return make_error(ExitCode::failed,
                      where +
                          "the node accepts only clients with keys: give "
                          "server_key=KEY&key_file=FILE: `atoll keys generate` makes a file");
  }
  return make_error(
      ExitCode::failed,
      where + "the node ended the handshake: server_key " + to_hex(*address.server_key) +
          " is not its key, or it uses none: `atoll status` shows the key of each node");
}

Result<void> NetworkLink::open_session(const std::string& where, LinkClock::time_point until) {
  WireWriter writer;
  send(writer.hello(program_invocation_short_name));
  for (;;) {
    while (const auto bytes = receive()) {
      WireFrame frame;
      const auto read = read_wire_frame(*bytes, frame);
      if (!read) return make_error(ExitCode::failed, where + ": " + read.error().message);
      if (frame.kind == WireFrame::Kind::refusal) {
        const std::string why = where + ": " + std::string(frame.refusal.message);
        switch (frame.refusal.code) {
          case RefusalCode::limit:
            return make_error(ExitCode::resources, why);
          case RefusalCode::stopping:
            return make_error(ExitCode::not_running, why);
          default:
            return make_error(ExitCode::failed, why);
        }
      }
      if (frame.kind != WireFrame::Kind::welcome) continue;
      const WireWelcome& welcome = frame.welcome;
      if (welcome.incarnation == 0) {
        return make_error(ExitCode::failed,
                          where + ": the node sent a Welcome without incarnation");
      }
      session_ = {welcome.session,
                  welcome.node,
                  welcome.incarnation,
                  welcome.max_in_flight,
                  welcome.max_in_flight_bytes,
                  welcome.rights,
                  std::string(welcome.key_name),
                  std::min(welcome.max_input_bytes, kMaxSessionInputBytes),
                  std::min(welcome.max_output_bytes, kMaxSessionOutputBytes)};
      return {};
    }
    if (has_ended() || LinkClock::now() >= until) {
      return make_error(ExitCode::not_running,
                        where + ": the node opened no session in time: try again later");
    }
    wait_until(until);
  }
}

Result<std::unique_ptr<NetworkLink>> NetworkLink::open(const NetworkAddress& address,
                                                       std::chrono::milliseconds timeout) {
  CHECK(!address.host.empty() && address.port != 0);
  CHECK(!address.server_key || !address.key_file.empty());
  ATOLL_ASSIGN(const ZmqLibrary* const zmq, ZmqLibrary::load());
  const auto until = LinkClock::now() + timeout;
  for (int attempt = 1;; ++attempt) {
    std::unique_ptr<NetworkLink> link(new NetworkLink(*zmq));
    ATOLL_TRY(link->connect(address, timeout));
    const Handshake handshake = link->await_handshake(until);
    if (handshake == Handshake::done) {
      ATOLL_TRY(link->open_session(text_of(address), until));
      return link;
    }
    // A node that dies ends its handshakes, too. It does not listen any more soon afterwards.
    const bool may_be_dying = handshake == Handshake::closed && attempt < kHandshakeAttempts;
    if (!may_be_dying || LinkClock::now() + kHandshakePause >= until) {
      return link->handshake_error(handshake, address, timeout);
    }
    std::this_thread::sleep_for(kHandshakePause);
  }
}

bool NetworkLink::send(Frame frame) {
  DCHECK(!frame.empty() && frame.size() <= kMaxWireFrameBytes);
  return zmq_.send(sockets_->dealer, frame.data(), frame.size(), ZMQ_DONTWAIT) >= 0;
}

bool NetworkLink::send_part(Frame frame) {
  DCHECK(has_room_for_part() && frame.size() <= kMaxWirePartBytes + kMaxPartHeadBytes);
  auto held = std::make_unique<UnsentFrame>(frame, unsent_parts_, nullptr);
  zmq_msg_t message;
  std::byte* const data = held->bytes.data();
  const bool is_made =
      zmq_.msg_init_data(&message, data, frame.size(), UnsentFrame::free, held.get()) == 0;
  CHECK(is_made);  // an error would be a lack of memory
  static_cast<void>(held.release());
  if (zmq_.msg_send(&message, sockets_->dealer, ZMQ_DONTWAIT) >= 0) return true;
  zmq_.msg_close(&message);
  return false;
}

std::optional<NetworkLink::Frame> NetworkLink::receive() {
  zmq_msg_t& message = sockets_->message;
  bool is_single = true;
  // The node sends only messages of one part. Others are skipped.
  do {
    is_single = true;
    if (zmq_.msg_recv(&message, sockets_->dealer, ZMQ_DONTWAIT) < 0) return std::nullopt;
    while (zmq_.msg_more(&message) != 0) {
      is_single = false;
      if (zmq_.msg_recv(&message, sockets_->dealer, ZMQ_DONTWAIT) < 0) return std::nullopt;
    }
  } while (!is_single);
  return Frame(static_cast<const std::byte*>(zmq_.msg_data(&message)), zmq_.msg_size(&message));
}

void NetworkLink::wait(int wake_fd, int timeout_ms) {
  CHECK(wake_fd >= 0);
  std::array<zmq_pollitem_t, 3> items{{{sockets_->dealer, 0, ZMQ_POLLIN, 0},
                                       {sockets_->monitor, 0, ZMQ_POLLIN, 0},
                                       {nullptr, wake_fd, ZMQ_POLLIN, 0}}};
  zmq_.poll(items.data(), static_cast<int>(items.size()), timeout_ms);
}

bool NetworkLink::has_ended() {
  uint16_t event = 0;
  while (next_event(event)) {
    if (event == ZMQ_EVENT_DISCONNECTED || event == ZMQ_EVENT_CLOSED) has_ended_ = true;
  }
  return has_ended_;
}

}  // namespace atolldb
