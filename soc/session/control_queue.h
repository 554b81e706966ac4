// Queue of control requests, and description of a session. Local and network sessions share both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "shared/message/control_message.h"
#include "soc/session/request_sink.h"

namespace atolldb {

/// Control requests that wait for the one thread that uses the sessions. Thread: any.
class ControlQueue {
 public:
  /// Limit of requests that wait.
  static constexpr size_t kMaxWaiting = 64;

  struct Waiting {
    ControlRequest request;
    ControlReply reply;
  };

  /// `server`: names the server of the sessions in errors, for example "node 3".
  explicit ControlQueue(std::string server);

  /// Until this call, and after `close`, requests are answered with not_running.
  void open();
  /// Returns whether the request waits. Otherwise it was answered with an error: not_running, or
  /// resources at the limit.
  bool add(const ControlRequest& request, const ControlReply& reply);
  /// Returns the requests that wait. The caller answers them.
  std::vector<Waiting> take();
  /// Answers the requests that wait, and all later ones, with not_running.
  void close();

 private:
  std::string error_text(const ControlRequest& request, const std::string& why) const;

  const std::string server_;
  std::mutex mutex_;
  bool is_open_ = false;          // guarded by mutex_
  std::vector<Waiting> waiting_;  // guarded by mutex_
};

/// The members that the descriptions of all kinds of sessions have.
struct SessionDescription {
  uint32_t number = 0;
  bool has_ended = false;
  uint64_t opened_ns = 0;
  uint64_t answered = 0;
  uint32_t in_flight = 0;
  const SessionCall* oldest = nullptr;  // in flight; null: none
  uint64_t last_arrived_ns = 0;         // 0: no request has arrived
  std::string_view program;             // empty: unknown
};

Json describe(const SessionDescription& session, uint64_t now_ns);

}  // namespace atolldb
