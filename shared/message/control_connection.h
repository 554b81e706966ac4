// One connection of a control client: sends a request, and detects the answer or the end of the
// other process (R64). It needs ZeroMQ's header, so all other code includes control_client.h.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <zmq.hpp>

namespace atolldb {

/// Result of waiting for an answer.
enum class CallEnd {
  answered,
  timed_out,
  gave_up,    // `gave_up` returned true
  refused,    // no process has accepted the connection
  broken_off  // the process that accepted it has ended; it may have received the request
};

class ControlConnection {
 public:
  /// Throws zmq::error_t, as all functions of this class do.
  explicit ControlConnection(const std::string& endpoint);
  ~ControlConnection();
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  /// Called once per connection. Polls `gave_up`, if set, during the wait.
  CallEnd call(std::string_view request, std::chrono::milliseconds timeout,
               const std::function<bool()>& gave_up, zmq::message_t& answer);

 private:
  void look_at_events();
  bool take(zmq::message_t& answer);

  zmq::socket_t socket_;
  zmq::socket_t events_;  // events of socket_
  bool is_connected_ = false;
  bool is_refused_ = false;
  bool is_broken_ = false;
};

}  // namespace atolldb
