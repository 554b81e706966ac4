#include "shared/metrics/logger_families.h"

#include <string>

namespace atolldb {
namespace {

struct LoggerCounter {
  const char* name;
  const char* help;
  Counter LoggerMetrics::* counter;
};
constexpr LoggerCounter kLoggerCounters[] = {
    {"atoll_logger_written_bytes_total",
     "Bytes written to log files, with headers, markers and padding.",
     &LoggerMetrics::written_bytes},
    {"atoll_logger_blocks_total", "Log blocks written.", &LoggerMetrics::blocks},
    {"atoll_logger_batches_total", "Markers synced: epochs made durable at one go.",
     &LoggerMetrics::batches},
    {"atoll_logger_files_total", "Log files begun.", &LoggerMetrics::files},
    {"atoll_logger_failed_preallocations_total",
     "Attempts to make the next log file ahead that found no room.",
     &LoggerMetrics::failed_preallocations},
};

struct LoggerGauge {
  const char* name;
  const char* help;
  std::atomic<uint64_t> LoggerMetrics::* gauge;
};
constexpr LoggerGauge kGauges[] = {
    {"atoll_logger_batch_bytes", "Size of the latest batch.", &LoggerMetrics::batch_bytes},
    {"atoll_logger_epoch_lag",
     "Epochs that had begun after the latest one when it was durable here.",
     &LoggerMetrics::epoch_lag},
    {"atoll_logger_lacks_next_file",
     "1 while there is no room for the next log file: the cluster ends when the current one is "
     "full.",
     &LoggerMetrics::lacks_next_file},
};

struct LoggerHistogram {
  const char* name;
  const char* help;
  Histogram LoggerMetrics::* histogram;
};
constexpr LoggerHistogram kHistograms[] = {
    {"atoll_logger_write_seconds", "Time to write a batch with its marker, without its sync.",
     &LoggerMetrics::write_ns},
    {"atoll_logger_sync_seconds", "Time to sync a batch.", &LoggerMetrics::sync_ns},
};

/// Returns upper bounds in nanoseconds, which are bucket limits: 32 us to 2 s, each twice the
/// previous one.
std::vector<uint64_t> bounds() {
  constexpr uint64_t kFirst = uint64_t{1} << 15;
  constexpr uint64_t kLast = uint64_t{1} << 31;
  std::vector<uint64_t> bounds;
  for (uint64_t bound = kFirst; bound <= kLast; bound *= 2) bounds.push_back(bound);
  return bounds;
}

}  // namespace

void add_loggers(MetricFamilies& families, std::span<const LoggerMetrics> loggers) {
  if (loggers.empty()) return;
  const auto label = [](size_t i) { return MetricFamilies::Labels{{"logger", std::to_string(i)}}; };
  for (const LoggerCounter& each : kLoggerCounters) {
    families.counter(each.name, each.help);
    for (size_t i = 0; i < loggers.size(); ++i) {
      families.sample((loggers[i].*each.counter).get(), label(i));
    }
  }
  for (const LoggerGauge& each : kGauges) {
    families.gauge(each.name, each.help);
    for (size_t i = 0; i < loggers.size(); ++i) {
      families.sample((loggers[i].*each.gauge).load(std::memory_order_relaxed), label(i));
    }
  }
  for (const LoggerHistogram& each : kHistograms) {
    families.histogram(each.name, each.help);
    for (size_t i = 0; i < loggers.size(); ++i) {
      families.sample(loggers[i].*each.histogram, bounds(), label(i));
    }
  }
}

}  // namespace atolldb
