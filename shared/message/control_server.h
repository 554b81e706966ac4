// Serves control requests on one endpoint, with a thread of its own.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "shared/message/control_message.h"

namespace atolldb {

/// Counts and drops invalid frames. A handler may answer its request later, and from any thread.
class ControlServer {
 public:
  /// Binds `endpoint`. Sockets of ipc endpoints are accessible to this user only. The server does
  /// not receive messages longer than `max_request_bytes`, and closes their connection (R64).
  /// REQUIRES: `handler` outlives the server.
  static Result<std::unique_ptr<ControlServer>> start(const std::string& endpoint,
                                                      ControlHandler handler,
                                                      size_t max_request_bytes = kMaxControlBytes);
  ~ControlServer();

  uint64_t garbage_count() const;

 private:
  struct Shared;
  class Loop;
  ControlServer(std::shared_ptr<Shared> shared, std::unique_ptr<Loop> loop);

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Loop> loop_;
};

}  // namespace atolldb
