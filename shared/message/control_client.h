// Sends control requests to one process.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "shared/message/control_message.h"

namespace atolldb {

/// Thread-safe: each call has its own connection.
class ControlClient {
 public:
  explicit ControlClient(std::string endpoint);

  /// Sends a request, and returns the body of the answer. `gave_up`, if set, is polled during the
  /// wait; true ends the wait. Errors:
  /// - usage: the request is longer than the limit of its op.
  /// - coordinator_unreachable: no answer in time, `gave_up` returned true, or the process has
  ///   ended. A call ends as soon as the process ends, and its outcome is then unknown (R64). The
  ///   request is never sent to a process that replaces the first one.
  /// - The code of the answer, if the answer is an error.
  /// REQUIRES: the operation is not `unknown`.
  Result<Json> call(ControlOperation operation, const Json& body, std::chrono::milliseconds timeout,
                    const std::function<bool()>& gave_up = {}) const {
    return call_by_name(to_string(operation), body, timeout, gave_up);
  }
  /// Does the same as `call`. `op` may be a name that no operation has.
  Result<Json> call_by_name(std::string_view op, const Json& body,
                            std::chrono::milliseconds timeout,
                            const std::function<bool()>& gave_up = {}) const;

 private:
  std::string endpoint_;
};

}  // namespace atolldb
