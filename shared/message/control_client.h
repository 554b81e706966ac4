// Sends control requests to one process.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "shared/message/control_message.h"

namespace atolldb {

/// May be used by several threads; each call has a connection of its own.
class ControlClient {
 public:
  explicit ControlClient(std::string endpoint);
  ~ControlClient();

  /// The body of the answer. No answer in time: code coordinator_unreachable. `gave_up`, if any,
  /// is asked now and then while waiting: true ends the wait.
  Result<Json> call(std::string_view op, const Json& body, std::chrono::milliseconds timeout,
                    const std::function<bool()>& gave_up = {}) const;

 private:
  struct Context;
  std::string endpoint_;
  std::unique_ptr<Context> context_;
};

}  // namespace atolldb
