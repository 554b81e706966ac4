#include "shared/metrics/device_families.h"

namespace atolldb {

void add_device(MetricFamilies& families, const DeviceMetrics& device) {
  families
      .gauge("atoll_device_pending_seconds",
             "Age of the oldest read, write or sync that the device has not answered.")
      .sample(static_cast<double>(device.pending_ns.load(std::memory_order_relaxed)) * 1e-9);
  families
      .counter("atoll_device_hangs_total",
               "Reads, writes and syncs that took longer than durability.device_hang_limit.")
      .sample(device.hangs.load(std::memory_order_relaxed));
}

}  // namespace atolldb
