// The services of every child process: control requests and metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shared/base/error.h"
#include "shared/config/config.h"
#include "shared/message/control_server.h"
#include "shared/metrics/exposer.h"

namespace atolldb {

class ChildServices {
 public:
  /// Binds the control endpoint, for requests of at most `max_request_bytes`. If the config enables
  /// metrics, also binds their port: `port_offset` above the base port. REQUIRES: the objects that
  /// `handler` and `collectable` use live until `stop`.
  Result<void> start(const Config& config, const std::string& control_endpoint,
                     ControlHandler handler, size_t max_request_bytes, uint32_t port_offset,
                     std::shared_ptr<prometheus::Collectable> collectable);
  /// After this call no request is served.
  void stop();
  /// Returns the endpoints of the running process for the launcher, as JSON.
  std::string endpoints_text() const;

 private:
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<MetricsExposer> exposer_;
};

}  // namespace atolldb
