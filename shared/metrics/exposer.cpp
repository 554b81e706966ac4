#include "shared/metrics/exposer.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>

#include <exception>
#include <utility>

namespace atolldb {
namespace {

std::string address_of(const std::string& listen, int port) {
  const bool is_ipv6 = listen.find(':') != std::string::npos && listen.front() != '[';
  return (is_ipv6 ? "[" + listen + "]" : listen) + ":" + std::to_string(port);
}

}  // namespace

Result<std::unique_ptr<MetricsExposer>> MetricsExposer::start(
    const std::string& listen, uint16_t port,
    std::shared_ptr<prometheus::Collectable> collectable) {
  // The library reports by exceptions; they end here.
  try {
    // One thread: Prometheus keeps one connection and sends one request at a time.
    auto exposer = std::make_unique<prometheus::Exposer>(address_of(listen, port), 1);
    const std::vector<int> ports = exposer->GetListeningPorts();
    if (ports.empty()) throw std::runtime_error("no port");
    exposer->RegisterCollectable(collectable);
    return std::unique_ptr<MetricsExposer>(new MetricsExposer(
        std::move(exposer), std::move(collectable), address_of(listen, ports.front())));
  } catch (const std::exception&) {
    return make_error(ExitCode::resources,
                      "metrics.base_port: cannot listen on " + address_of(listen, port) +
                          ": is another process using the port? Set metrics.base_port to a free "
                          "range, or to 0 for any free port");
  }
}

MetricsExposer::MetricsExposer(std::unique_ptr<prometheus::Exposer> exposer,
                               std::shared_ptr<prometheus::Collectable> collectable,
                               std::string endpoint)
    : collectable_(std::move(collectable)),
      exposer_(std::move(exposer)),
      endpoint_(std::move(endpoint)) {}

MetricsExposer::~MetricsExposer() = default;

}  // namespace atolldb
