// Requests in a session of this process with a node: through shared memory, or over the network.
#pragma once

#include <memory>
#include <utility>

#include "bench/driver/transport.h"
#include "shared/client/client_transport.h"

namespace atolldb::bench {

class SessionTransport final : public Transport {
 public:
  /// `capacity`: most requests in flight that the session takes.
  SessionTransport(std::unique_ptr<ClientTransport> session, uint32_t capacity)
      : session_(std::move(session)), capacity_(capacity) {}

  uint32_t capacity() const override { return capacity_; }
  Status submit(std::string_view procedure, std::span<const std::byte> input, bool is_durable,
                Reply reply) override;
  void dispatch(std::chrono::nanoseconds timeout) override { session_->dispatch(timeout); }

 private:
  const std::unique_ptr<ClientTransport> session_;
  const uint32_t capacity_;
};

}  // namespace atolldb::bench
