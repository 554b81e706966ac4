// Receives the answer to a control request, for tests.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

#include "shared/base/error.h"
#include "shared/message/control_message.h"

namespace atolldb::test {

/// Receives one answer, and waits for it.
class ControlAnswer {
 public:
  ControlReply reply() const {
    return [promise = promise_](Result<Json> result) { promise->set_value(std::move(result)); };
  }
  Result<Json> get() { return future_.get(); }
  bool is_there_soon() const {
    return future_.wait_for(std::chrono::seconds(30)) == std::future_status::ready;
  }

 private:
  std::shared_ptr<std::promise<Result<Json>>> promise_ =
      std::make_shared<std::promise<Result<Json>>>();
  std::future<Result<Json>> future_ = promise_->get_future();
};

}  // namespace atolldb::test
