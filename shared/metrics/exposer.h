// Serves the metrics of one process to Prometheus.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "shared/error.h"

namespace prometheus {
class Collectable;
class Exposer;
}  // namespace prometheus

namespace atolldb {

/// An HTTP server with threads of its own; answers GET /metrics until it is destroyed. The workers
/// are not involved: a scrape reads their counters from shared memory.
///
/// Clients that send half a request, or trickle one, each take a thread until kRequestTimeout. So a
/// scrape beside N of them waits for N / kThreads timeouts at most.
class MetricsExposer {
 public:
  static constexpr uint32_t kThreads = 8;
  /// From the first byte of a request to its last, and for each part of an answer.
  static constexpr std::chrono::milliseconds kRequestTimeout{1'000};

  /// Port 0 takes any free one. A port that cannot be had: code resources, names key and port.
  static Result<std::unique_ptr<MetricsExposer>> start(
      const std::string& listen, uint16_t port,
      std::shared_ptr<prometheus::Collectable> collectable);
  MetricsExposer(const MetricsExposer&) = delete;
  MetricsExposer& operator=(const MetricsExposer&) = delete;
  ~MetricsExposer();

  /// "127.0.0.1:9101"; an IPv6 address stands in brackets.
  const std::string& endpoint() const { return endpoint_; }

 private:
  MetricsExposer(std::unique_ptr<prometheus::Exposer> exposer,
                 std::shared_ptr<prometheus::Collectable> collectable, std::string listen,
                 int port);

  // The server holds the collectable weakly. It is declared first: destroyed last.
  std::shared_ptr<prometheus::Collectable> collectable_;
  std::unique_ptr<prometheus::Exposer> exposer_;
  std::string listen_;
  int port_;
  std::string endpoint_;
};

/// The port that a process of the cluster serves on: the coordinator `base_port`, node k the one
/// k + 1 above; 0 when every process takes a free one.
constexpr uint16_t metrics_port(uint16_t base_port, uint32_t offset) {
  return base_port == 0 ? uint16_t{0} : static_cast<uint16_t>(base_port + offset);
}

}  // namespace atolldb
