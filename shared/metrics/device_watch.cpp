#include "shared/metrics/device_watch.h"

#include <fmt/format.h>

#include <algorithm>

#include "shared/base/check.h"
#include "shared/config/config_values.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

constexpr Metric<DeviceMetrics> kDeviceMetrics[] = {
    {"atoll_device_pending_seconds",
     "Age of the oldest read, write or sync that the device has not answered.",
     field<&DeviceMetrics::pending_ns>, 1e-9},
    {"atoll_device_hangs_total",
     "Reads, writes and syncs that took longer than durability.device_hang_limit.",
     field<&DeviceMetrics::hangs>},
    {"atoll_emulated_delays_total", "Delays that emulate NVRAM, of reads, writes and syncs.",
     field<&DeviceMetrics::delays>},
    {"atoll_emulated_delay_asked_seconds_total", "Length of these delays, as the config sets it.",
     field<&DeviceMetrics::delay_asked_ns>, 1e-9},
    {"atoll_emulated_delay_taken_seconds_total",
     "Length of these delays, as measured; the difference is the error of the emulation.",
     field<&DeviceMetrics::delay_taken_ns>, 1e-9},
};

std::string limit_text(std::chrono::milliseconds limit) {
  return format_duration_us(std::chrono::microseconds(limit).count());
}

std::string hang_text(const char* operation, const std::string& path, std::chrono::nanoseconds age,
                      std::chrono::milliseconds limit) {
  return fmt::format("device hangs: {} on {} for {:.1f} s (limit {})", operation, path,
                     std::chrono::duration<double>(age).count(), limit_text(limit));
}

}  // namespace

std::optional<DeviceWatch::Change> DeviceWatch::check() {
  const auto pending = watch_.oldest();
  const bool hangs = pending && pending->age > limit_;
  // All stores are relaxed, because the values are only displayed.
  const auto age = pending ? static_cast<uint64_t>(std::max<int64_t>(pending->age.count(), 0)) : 0;
  metrics_.pending_ns.store(age, std::memory_order_relaxed);
  publish_delays();
  if (hangs && !hang_) {
    CHECK(metrics_.operation.load(std::memory_order_relaxed) == 0);
    CHECK(pending->operation != IoOperation::none);
    hang_ = pending;
    metrics_.path.set(pending->path);
    metrics_.operation.store(static_cast<uint32_t>(pending->operation), std::memory_order_relaxed);
    metrics_.hangs.fetch_add(1, std::memory_order_relaxed);
    return Change{true,
                  hang_text(to_string(pending->operation), pending->path, pending->age, limit_)};
  }
  if (hangs) {
    hang_->age = pending->age;
    return std::nullopt;
  }
  if (!hang_) return std::nullopt;
  CHECK(metrics_.operation.load(std::memory_order_relaxed) != 0);
  metrics_.operation.store(0, std::memory_order_relaxed);
  Change over = {false, fmt::format("the device answers again: {} on {} took {:.1f} s or more",
                                    to_string(hang_->operation), hang_->path,
                                    std::chrono::duration<double>(hang_->age).count())};
  hang_.reset();
  return over;
}

void DeviceWatch::publish_delays() {
  const DelayCounts& delays = watch_.delays();
  // Relaxed: for display. A scrape may see a delay in one of these counters and not in another.
  const auto publish = [](std::atomic<uint64_t>& to, const std::atomic<uint64_t>& from) {
    to.store(from.load(std::memory_order_relaxed), std::memory_order_relaxed);
  };
  publish(metrics_.delays, delays.delays);
  publish(metrics_.delay_asked_ns, delays.asked_ns);
  publish(metrics_.delay_taken_ns, delays.taken_ns);
}

std::string device_hang_text(const DeviceMetrics& metrics, std::chrono::milliseconds limit) {
  const uint32_t operation = metrics.operation.load(std::memory_order_relaxed);
  if (operation == 0) return "";
  const auto age = static_cast<int64_t>(metrics.pending_ns.load(std::memory_order_relaxed));
  return hang_text(to_string(static_cast<IoOperation>(operation)), metrics.path.text(),
                   std::chrono::nanoseconds(age), limit);
}

void add_device(MetricFamilies& families, const DeviceMetrics& device) {
  families.add(kDeviceMetrics, device);
}

}  // namespace atolldb
