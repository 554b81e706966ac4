// Serves the metrics of one process to Prometheus.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace atolldb {

/// HTTP server with its own threads. Serves GET /metrics until its destruction: the metrics of
/// `collectable`, and those that each process has (ProcessMetrics). A scrape reads counters from
/// memory, and involves no worker.
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
  /// Returns an address in this form.
  static std::string endpoint_text(const std::string& listen, int port);
  /// Ends a server of the HTTP library that listens on this address. `end` is the call that ends
  /// it. The library checks only every two seconds, and after each connection, whether it has to
  /// end. So this function connects until `end` has returned.
  static void end_server(const std::string& listen, int port, const std::function<void()>& end);

 private:
  using Collectables = std::vector<std::shared_ptr<prometheus::Collectable>>;

  MetricsExposer(std::unique_ptr<prometheus::Exposer> exposer, Collectables collectables,
                 std::string listen, int port);

  // The server has only weak pointers to them. Declared first, so they are destroyed last.
  Collectables collectables_;
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
