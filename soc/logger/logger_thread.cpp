#include "soc/logger/logger_thread.h"

#include <algorithm>
#include <utility>

#include "shared/sync/wait_word.h"

namespace atolldb {

LoggerThread::LoggerThread(Settings settings, EpochLogger logger, Logger log)
    : settings_(std::move(settings)), logger_(std::move(logger)), log_(std::move(log)) {
  slot().durable_epoch.store(logger_.durable_epoch(), std::memory_order_release);
}

void LoggerThread::start() {
  thread_ = std::thread([this] { run(); });
}

void LoggerThread::stop() {
  stop_.store(true, std::memory_order_release);
  // The thread looks at `stop_` when it wakes: at the next marker, or after kMaxSleep.
  if (thread_.joinable()) thread_.join();
}

/// Of all nodes: the others' last commits need a marker of every logger, too.
bool LoggerThread::has_all() const {
  uint64_t dirty = 0;
  for (uint32_t node = 0; node < settings_.view->control->node_count; ++node) {
    dirty =
        std::max(dirty, settings_.view->shared[node]->dirty_epoch.load(std::memory_order_seq_cst));
  }
  return logger_.durable_epoch() >= dirty;
}

void LoggerThread::run() {
  EpochBlock& epochs = settings_.view->control->epochs;
  const std::atomic<uint32_t>& state = settings_.view->control->state;
  for (;;) {
    // Acquire, before the wanted epoch: what is wanted after our look changes the signal, too.
    const uint32_t signal = epochs.marker_signal.load(std::memory_order_acquire);
    const uint64_t wanted = epochs.marker_wanted.load(std::memory_order_acquire);
    Result<void> done;
    if (wanted > logger_.durable_epoch()) {
      done = make_durable(wanted);
    } else {
      // Order: first that it ends, then what there is to do.
      const bool ends = stop_.load(std::memory_order_acquire);
      const bool has_failed = state.load(std::memory_order_acquire) >= kClusterFailedFrom;
      if (has_failed || (ends && has_all())) return;
      done = logger_.prepare_next_file();
      if (done) wait_on(epochs.marker_signal, signal, kMaxSleep);
    }
    if (!done) {
      log_->critical("{}", done.error().message);
      // Release: the coordinator stops the cluster, nothing is acknowledged any more.
      slot().failure.store(static_cast<uint32_t>(done.error().code), std::memory_order_release);
      epochs.logger_signal.fetch_add(1, std::memory_order_release);
      wake(epochs.logger_signal, kWakeAll);
      settings_.on_failure(done.error());
      return;
    }
  }
}

void LoggerThread::note(const LogWriterCounters& before, uint64_t epoch) {
  LoggerMetrics& metrics = *settings_.metrics;
  const LogWriterCounters& now = logger_.counters();
  metrics.written_bytes.add(now.bytes - before.bytes);
  metrics.blocks.add(now.blocks - before.blocks);
  metrics.files.add(now.files - before.files);
  metrics.batches.add();
  metrics.write_ns.add(logger_.latest().write_ns);
  metrics.sync_ns.add(logger_.latest().sync_ns);
  metrics.batch_bytes.store(logger_.latest().written_bytes, std::memory_order_relaxed);
  const uint64_t current = settings_.view->control->epochs.current.load(std::memory_order_relaxed);
  metrics.epoch_lag.store(current - epoch, std::memory_order_relaxed);
}

Result<void> LoggerThread::make_durable(uint64_t epoch) {
  EpochBlock& epochs = settings_.view->control->epochs;
  const LogWriterCounters before = logger_.counters();
  Result<void> done = logger_.close(epoch);
  if (!done) return done;
  note(before, epoch);
  // Release: up to here everything is on the device.
  slot().durable_epoch.store(logger_.durable_epoch(), std::memory_order_release);
  epochs.logger_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.logger_signal, kWakeAll);
  return done;
}

}  // namespace atolldb
