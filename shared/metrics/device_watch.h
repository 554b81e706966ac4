// Detects a hanging device (R58). At each heartbeat it checks the calls that IoWatch has recorded.
// It never touches the device.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "shared/base/check.h"
#include "shared/file/io_watch.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

class MetricFamilies;

class DeviceWatch {
 public:
  /// REQUIRES: `watch` and `metrics` outlive this object.
  DeviceWatch(const IoWatch& watch, DeviceMetrics& metrics, std::chrono::milliseconds limit)
      : watch_(watch), metrics_(metrics), limit_(limit) {
    CHECK(limit_.count() >= 0);
  }

  struct Change {
    bool hangs = false;  // false: the device answers again
    std::string text;
  };
  /// Publishes the oldest call in progress, and the emulated delays. Returns a change when a hang
  /// begins and when it ends. Thread: a single one.
  std::optional<Change> check();
  /// Changes the limit. Thread: that of `check`.
  void set_limit(std::chrono::milliseconds limit) { limit_ = limit; }

 private:
  void publish_delays();

  const IoWatch& watch_;
  DeviceMetrics& metrics_;
  std::chrono::milliseconds limit_;
  std::optional<PendingIo> hang_;  // current hang, whose begin `check` has returned
};

/// Returns text like "device hangs: sync on /data/node0/log_1_0_000000.atlog for 12.0 s (limit
/// 10s)", or an empty string without a hang.
std::string device_hang_text(const DeviceMetrics& metrics, std::chrono::milliseconds limit);

/// Adds the metric families about device calls to a scrape.
void add_device(MetricFamilies& families, const DeviceMetrics& device);

}  // namespace atolldb
