// The functions of ZeroMQ that a client of the network needs, from a library that is loaded when
// the first client connects. So programs that use only local sessions need no ZeroMQ.
#pragma once

#include <zmq.h>

#include "shared/base/error.h"

namespace atolldb {

struct ZmqLibrary {
  decltype(&zmq_ctx_new) ctx_new = nullptr;
  decltype(&zmq_ctx_set) ctx_set = nullptr;
  decltype(&zmq_ctx_term) ctx_term = nullptr;
  decltype(&zmq_socket) socket = nullptr;
  decltype(&zmq_close) close = nullptr;
  decltype(&zmq_setsockopt) setsockopt = nullptr;
  decltype(&zmq_connect) connect = nullptr;
  decltype(&zmq_send) send = nullptr;
  decltype(&zmq_poll) poll = nullptr;
  decltype(&zmq_msg_init) msg_init = nullptr;
  decltype(&zmq_msg_init_data) msg_init_data = nullptr;
  decltype(&zmq_msg_send) msg_send = nullptr;
  decltype(&zmq_msg_recv) msg_recv = nullptr;
  decltype(&zmq_msg_close) msg_close = nullptr;
  decltype(&zmq_msg_data) msg_data = nullptr;
  decltype(&zmq_msg_size) msg_size = nullptr;
  decltype(&zmq_msg_more) msg_more = nullptr;
  decltype(&zmq_socket_monitor) socket_monitor = nullptr;
  decltype(&zmq_errno) last_error = nullptr;
  decltype(&zmq_strerror) strerror = nullptr;
  decltype(&zmq_has) has = nullptr;

  /// Returns the functions. Loads the library once. Error: config if it is not installed, or too
  /// old. Thread: any.
  static Result<const ZmqLibrary*> load();
};

}  // namespace atolldb
