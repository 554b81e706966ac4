#include "shared/message/control_connection.h"

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace atolldb {
namespace {

/// Interval at which a waiting caller polls `gave_up`.
constexpr std::chrono::milliseconds kSlice{100};
/// A process that has its socket file, or is about to create it, accepts connections within this
/// time.
constexpr std::chrono::milliseconds kConnectPatience{1'000};

/// One context for all calls of a process, because it has a thread of its own. Never destroyed,
/// because calls may be in progress when the program ends. A forked child gets its own context.
zmq::context_t& shared_context() {
  static std::mutex mutex;
  static pid_t owner = 0;
  static zmq::context_t* context = nullptr;
  const std::lock_guard guard(mutex);
  if (owner != getpid()) {
    context = new zmq::context_t;
    owner = getpid();
  }
  return *context;
}

std::string next_event_name() {
  static std::atomic<uint64_t> calls{0};
  return "inproc://control-events-" + std::to_string(calls.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

ControlConnection::ControlConnection(const std::string& endpoint)
    : socket_(shared_context(), zmq::socket_type::dealer),
      events_(shared_context(), zmq::socket_type::pair) {
  socket_.set(zmq::sockopt::linger, 0);
  events_.set(zmq::sockopt::linger, 0);
  const std::string name = next_event_name();
  const int wanted =
      ZMQ_EVENT_CONNECTED | ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_CLOSED;
  if (zmq_socket_monitor(socket_.handle(), name.c_str(), wanted) != 0) throw zmq::error_t();
  events_.connect(name);
  socket_.connect(endpoint);
}

/// Ends the events before their reader closes. Otherwise ZeroMQ's thread would block forever on an
/// event without a reader, and all calls of the process with it.
ControlConnection::~ControlConnection() { zmq_socket_monitor(socket_.handle(), nullptr, 0); }

CallEnd ControlConnection::call(std::string_view request, std::chrono::milliseconds timeout,
                                const std::function<bool()>& gave_up, zmq::message_t& answer) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  // Queued at once, and sent when there is a connection.
  if (!socket_.send(zmq::buffer(request), zmq::send_flags::dontwait)) return CallEnd::timed_out;
  std::vector<zmq::pollitem_t> items = {{socket_.handle(), 0, ZMQ_POLLIN, 0},
                                        {events_.handle(), 0, ZMQ_POLLIN, 0}};
  for (;;) {
    const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    if (waited >= timeout) return CallEnd::timed_out;
    if (gave_up && gave_up()) return CallEnd::gave_up;
    zmq::poll(items, std::min(kSlice, timeout - waited));
    if ((items[1].revents & ZMQ_POLLIN) != 0) look_at_events();
    // Take the answer after the events: it arrives before the end of its connection.
    if (take(answer)) return CallEnd::answered;
    // A new connection would reach a process that replaces the first one, and does not know the
    // request.
    if (is_broken_) return CallEnd::broken_off;
    if (is_refused_ && Clock::now() - begin >= std::min(kConnectPatience, timeout)) {
      return CallEnd::refused;
    }
  }
}

/// Reads the connection's events. Each is {number and value, endpoint}.
void ControlConnection::look_at_events() {
  zmq::message_t event;
  zmq::message_t endpoint;
  while (events_.recv(event, zmq::recv_flags::dontwait)) {
    if (event.more() && !events_.recv(endpoint, zmq::recv_flags::none)) return;
    uint16_t number = 0;
    if (event.size() < sizeof number) continue;
    std::memcpy(&number, event.data(), sizeof number);
    if (number == ZMQ_EVENT_CONNECTED) {
      is_connected_ = true;
      is_refused_ = false;
    } else if (is_connected_) {
      is_broken_ = true;
    } else if (number == ZMQ_EVENT_CONNECT_RETRIED) {
      is_refused_ = true;
    }
  }
}

bool ControlConnection::take(zmq::message_t& answer) {
  return socket_.recv(answer, zmq::recv_flags::dontwait).has_value();
}

}  // namespace atolldb
