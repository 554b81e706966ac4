// Requests through shared memory, in a session of this process with a node.
#pragma once

#include <memory>
#include <utility>

#include "bench/driver/transport.h"
#include "shared/client/session_client.h"

namespace atolldb::bench {

class LocalTransport final : public Transport {
 public:
  explicit LocalTransport(std::unique_ptr<SessionClient> session) : session_(std::move(session)) {}

  uint32_t capacity() const override;
  Status submit(std::string_view procedure, std::span<const std::byte> input, bool is_durable,
                Reply reply) override;
  void dispatch(std::chrono::nanoseconds timeout) override { session_->dispatch(timeout); }

 private:
  const std::unique_ptr<SessionClient> session_;
};

}  // namespace atolldb::bench
