#include "shared/process/child_services.h"

#include <utility>

#include "shared/base/try.h"

namespace atolldb {

Result<void> ChildServices::start(const Config& config, const std::string& control_endpoint,
                                  ControlHandler handler, size_t max_request_bytes,
                                  uint32_t port_offset,
                                  std::shared_ptr<prometheus::Collectable> collectable) {
  ATOLL_ASSIGN(auto server,
               ControlServer::start(control_endpoint, std::move(handler), max_request_bytes));
  server_ = std::move(server);
  if (!config.metrics.enabled) return {};
  ATOLL_ASSIGN(auto exposer,
               MetricsExposer::start(config.metrics.listen,
                                     metrics_port(config.metrics.base_port, port_offset),
                                     std::move(collectable)));
  exposer_ = std::move(exposer);
  return {};
}

void ChildServices::stop() {
  server_.reset();
  exposer_.reset();
}

std::string ChildServices::endpoints_text() const {
  return Json{{"metrics", exposer_ ? exposer_->endpoint() : ""}}.dump();
}

}  // namespace atolldb
