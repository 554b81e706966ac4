// Notices a device that hangs: looks at each heartbeat at what IoWatch has noted, and never touches
// the device itself (R58).
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "shared/file/io_watch.h"
#include "shared/metrics/device_metrics.h"

namespace atolldb {

class DeviceWatch {
 public:
  /// REQUIRES: both outlive it.
  DeviceWatch(const IoWatch& watch, DeviceMetrics& metrics, std::chrono::milliseconds limit)
      : watch_(watch), metrics_(metrics), limit_(limit) {}

  struct Change {
    bool hangs = false;  // false: the device answers again
    std::string text;
  };
  /// Publishes what is under way. Answers a hang when it begins and when it ends. One thread.
  std::optional<Change> look();

 private:
  const IoWatch& watch_;
  DeviceMetrics& metrics_;
  const std::chrono::milliseconds limit_;
  std::optional<PendingIo> hang_;  // the one that was answered as begun
};

/// "device hangs: sync on /data/node0/log_1_0_000000.atlog for 12 s (limit 10s)"; empty: none does.
std::string device_hang_text(const DeviceMetrics& metrics, std::chrono::milliseconds limit);

}  // namespace atolldb
