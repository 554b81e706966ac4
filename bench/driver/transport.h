// How a driver sends requests of clients to one node: through local sessions, or over a network.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "shared/base/status.h"

namespace atolldb::bench {

/// How clients reach the nodes.
struct ClientRoute {
  bool is_network = false;  // false: through shared memory
  std::string key_file;     // keys of network clients; empty: without keys
};

/// One connection. Thread: one.
class Transport {
 public:
  /// Gets the status and the output of a request. `output` is valid during the call.
  using Reply = std::function<void(Status status, std::span<const std::byte> output)>;

  virtual ~Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Returns the largest number of requests in flight.
  virtual uint32_t capacity() const = 0;
  /// Sends a request. `reply` is called from `dispatch`. Returns an error if the request could not
  /// be sent; `reply` is then not called. REQUIRES: fewer requests than `capacity` are in flight.
  virtual Status submit(std::string_view procedure, std::span<const std::byte> input,
                        bool is_durable, Reply reply) = 0;
  /// Calls `reply` for all answers that have arrived. Waits for the first at most `timeout`.
  virtual void dispatch(std::chrono::nanoseconds timeout) = 0;

 protected:
  Transport() = default;
};

}  // namespace atolldb::bench
