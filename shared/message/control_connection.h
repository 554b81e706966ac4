// One connection of a control client: a request, its answer, and the end of the process that was
// asked (R64). Needs ZeroMQ's header; everything else includes control_client.h.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <zmq.hpp>

namespace atolldb {

/// How a wait for an answer has ended.
enum class CallEnd {
  answered,
  timed_out,
  gave_up,    // the caller did
  refused,    // nobody has accepted the connection
  broken_off  // whoever had accepted it is gone: it may have got the request or not
};

class ControlConnection {
 public:
  /// Throws zmq::error_t, as all functions do.
  explicit ControlConnection(const std::string& endpoint);
  ~ControlConnection();
  ControlConnection(const ControlConnection&) = delete;
  ControlConnection& operator=(const ControlConnection&) = delete;

  /// Once. `gave_up` is asked now and then, if there is one.
  CallEnd call(std::string_view request, std::chrono::milliseconds timeout,
               const std::function<bool()>& gave_up, zmq::message_t& answer);

 private:
  void look_at_events();
  bool take(zmq::message_t& answer);

  zmq::socket_t socket_;
  zmq::socket_t events_;  // of socket_
  bool is_connected_ = false;
  bool is_refused_ = false;
  bool is_broken_ = false;
};

}  // namespace atolldb
