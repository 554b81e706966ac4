// What every child process serves while it runs: control requests and metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shared/config/config.h"
#include "shared/error.h"
#include "shared/message/control_server.h"
#include "shared/metrics/exposer.h"

namespace atolldb {

class ChildServices {
 public:
  /// Binds the control endpoint, for requests of at most `max_request_bytes`, and, if the config
  /// wants metrics, their port: `port_offset` above the base port. REQUIRES: what `handler` and
  /// `collectable` use lives until `stop`.
  Result<void> start(const Config& config, const std::string& control_endpoint,
                     ControlHandler handler, size_t max_request_bytes, uint32_t port_offset,
                     std::shared_ptr<prometheus::Collectable> collectable);
  /// No request is served any more afterwards.
  void stop();
  /// What the launcher wants to know of a process that runs, as JSON.
  std::string endpoints_text() const;

 private:
  std::unique_ptr<ControlServer> server_;
  std::unique_ptr<MetricsExposer> exposer_;
};

}  // namespace atolldb
