// Sends control requests to one process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "shared/message/control_message.h"

namespace atolldb {

/// May be used by several threads; each call has a connection of its own.
class ControlClient {
 public:
  explicit ControlClient(std::string endpoint);

  /// The body of the answer. Code usage: the request is longer than its op may be. Code
  /// coordinator_unreachable: no answer in time; or the process that was asked has ended, which
  /// ends the call at once, with an outcome that nobody knows (R64). Another process that is
  /// started in its place is not asked. `gave_up`, if any, is asked now and then while waiting:
  /// true ends the wait.
  Result<Json> call(std::string_view op, const Json& body, std::chrono::milliseconds timeout,
                    const std::function<bool()>& gave_up = {}) const;

 private:
  std::string endpoint_;
};

}  // namespace atolldb
