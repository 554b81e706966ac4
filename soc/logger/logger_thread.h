// The thread of one logger. It sleeps until a marker is requested, makes the epoch of the marker
// durable, and publishes this epoch (R27). In an idle cluster it writes nothing after the closing
// marker (R51).
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "engine/log/epoch_logger.h"
#include "shared/logging/logger.h"
#include "shared/memory/cluster_view.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

class LoggerThread {
 public:
  /// Called by the logger's thread when a write or sync has failed. The thread ends afterwards.
  using OnFailure = std::function<void(const Error&)>;

  struct Settings {
    const ClusterView* view = nullptr;
    uint32_t node = 0;
    uint32_t ordinal = 0;  // number of the logger within its node
    LoggerMetrics* metrics = nullptr;
    OnFailure on_failure;
  };

  /// REQUIRES: all objects that the settings refer to outlive this object.
  LoggerThread(Settings settings, EpochLogger logger, Logger log);
  LoggerThread(const LoggerThread&) = delete;
  LoggerThread& operator=(const LoggerThread&) = delete;
  ~LoggerThread() { stop(); }

  void start();
  /// Waits until this log has closed all epochs in which any node has committed, then ends the
  /// thread. REQUIRES: no worker of the cluster commits any more, and the epoch clock ticks; or the
  /// cluster has failed.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;

  void run();
  bool covers_all_commits() const;
  /// Makes the next file ahead of time. Does nothing until kPreallocationPause after a failed
  /// attempt. A full disk is no error as long as the current file has room.
  Result<void> prepare_next_file();
  void record_lack(const Error& error);
  void record_next_file();
  Result<void> make_durable(uint64_t epoch);
  uint64_t waited_ns(uint64_t epoch) const;
  void record_stages(uint64_t waited_ns);
  void record_batch(const LogWriterCounters& before, uint64_t epoch);
  void report_failure(const Error& error);
  void signal_coordinator();
  LoggerSlot& slot() const {
    return settings_.view->shared[settings_.node]->loggers[settings_.ordinal];
  }

  Settings settings_;
  EpochLogger logger_;
  Logger log_;
  // State of the attempts to make the next file. Used by the thread only.
  bool lacks_next_file_ = false;
  Clock::time_point retry_at_;
  Clock::time_point warn_at_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace atolldb
