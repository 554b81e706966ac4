// Serves the metrics of one process to Prometheus.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "shared/base/check.h"
#include "shared/base/error.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace atolldb {

/// HTTP server with its own threads. Serves GET /metrics until its destruction. A scrape reads
/// counters from shared memory, and involves no worker.
///
/// A client that sends half a request, or sends it slowly, takes a thread until kRequestTimeout.
/// With N such clients, a scrape waits for at most N / kThreads timeouts.
class MetricsExposer {
 public:
  static constexpr uint32_t kThreads = 8;
  /// Limit for the time from the first byte of a request to its last, and for each part of a
  /// response.
  static constexpr std::chrono::milliseconds kRequestTimeout{1'000};

  /// Starts the server. Port 0 takes any free port. Returns code resources if the port is not
  /// available; the text names the config key and the port.
  static Result<std::unique_ptr<MetricsExposer>> start(
      const std::string& listen, uint16_t port,
      std::shared_ptr<prometheus::Collectable> collectable);
  MetricsExposer(const MetricsExposer&) = delete;
  MetricsExposer& operator=(const MetricsExposer&) = delete;
  ~MetricsExposer();

  /// Address like "127.0.0.1:9101". An IPv6 address has brackets.
  const std::string& endpoint() const { return endpoint_; }

 private:
  MetricsExposer(std::unique_ptr<prometheus::Exposer> exposer,
                 std::shared_ptr<prometheus::Collectable> collectable, std::string listen,
                 int port);

  // The server has only a weak pointer to it. Declared first, so it is destroyed last.
  std::shared_ptr<prometheus::Collectable> collectable_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string listen_;
  int port_;
  std::string endpoint_;
};

/// Returns the port of a process of the cluster, or 0 if every process takes a free port. `offset`:
/// 0 for the coordinator, k + 1 for node k.
constexpr uint16_t metrics_port(uint16_t base_port, uint32_t offset) {
  CHECK(uint32_t{base_port} + offset <= UINT16_MAX);
  return base_port == 0 ? uint16_t{0} : static_cast<uint16_t>(base_port + offset);
}

}  // namespace atolldb
