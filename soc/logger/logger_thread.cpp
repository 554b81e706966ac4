#include "soc/logger/logger_thread.h"

#include <algorithm>
#include <utility>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Pause between two attempts to make the next log file, while it is missing.
constexpr std::chrono::milliseconds kPreallocationPause{200};
/// Pause between two warnings about a missing next file.
constexpr std::chrono::seconds kWarningPause{10};

}  // namespace

LoggerThread::LoggerThread(Settings settings, EpochLogger logger, Logger log)
    : settings_(std::move(settings)), logger_(std::move(logger)), log_(std::move(log)) {
  CHECK(settings_.view != nullptr && settings_.metrics != nullptr && settings_.on_failure);
  slot().durable_epoch.store(logger_.durable_epoch(), std::memory_order_release);
}

void LoggerThread::start() {
  CHECK(!thread_.joinable());
  thread_ = std::thread([this] { run(); });
}

void LoggerThread::stop() {
  stop_.store(true, std::memory_order_release);
  // The thread sees `stop_` when it wakes up. That is at the next request for a marker, or after
  // kMaxSleep.
  if (thread_.joinable()) thread_.join();
}

/// Returns whether this log has closed all epochs in which any node has committed. A commit is
/// durable only when every logger has closed its epoch.
bool LoggerThread::covers_all_commits() const {
  uint64_t dirty = 0;
  for (uint32_t node = 0; node < settings_.view->control->node_count; ++node) {
    dirty =
        std::max(dirty, settings_.view->shared[node]->dirty_epoch.load(std::memory_order_seq_cst));
  }
  return logger_.durable_epoch() >= dirty;
}

void LoggerThread::run() {
  name_thread("logger");
  become_prompt_thread();
  // Otherwise the writes of the log wait behind the reads of cold pages, which are many at a time.
  set_io_priority(IoPriority::first);
  EpochBlock& epochs = settings_.view->control->epochs;
  const std::atomic<uint32_t>& state = settings_.view->control->state;
  for (;;) {
    // Acquire: the wanted epoch is loaded after the signal. A request that the second load misses
    // also changes the signal, and so ends the wait below.
    const uint32_t signal = epochs.marker_signal.load(std::memory_order_acquire);
    const uint64_t wanted = epochs.marker_wanted.load(std::memory_order_acquire);
    Result<void> done;
    if (wanted > logger_.durable_epoch()) {
      done = make_durable(wanted);
      if (done && logger_.needs_next_file_soon()) done = prepare_next_file();
    } else {
      // Loads `stop_` before covers_all_commits loads the dirty epochs. `stop_` is set after the
      // last commit, so that function then sees all commits.
      const bool ends = stop_.load(std::memory_order_acquire);
      const bool has_failed = state.load(std::memory_order_acquire) >= kClusterFailedFrom;
      if (has_failed || (ends && covers_all_commits())) return;
      if (logger_.wants_next_file()) done = prepare_next_file();
      if (done) wait_on(epochs.marker_signal, signal, kMaxSleep);
    }
    if (!done) return report_failure(done.error());
  }
}

void LoggerThread::report_failure(const Error& error) {
  log_->critical("{}", error.message);
  // This comes before the store of `failure`, because the launcher must first learn the file and
  // the error. The coordinator then reports only that the logger has failed.
  settings_.on_failure(error);
  // Release pairs with the acquire of the coordinator, which then stops the cluster. Nothing is
  // acknowledged any more.
  slot().failure.store(static_cast<uint32_t>(error.code), std::memory_order_release);
  signal_coordinator();
}

void LoggerThread::signal_coordinator() {
  EpochBlock& epochs = settings_.view->control->epochs;
  epochs.logger_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.logger_signal, kWakeAll);
}

Result<void> LoggerThread::prepare_next_file() {
  if (lacks_next_file_ && Clock::now() < retry_at_) return {};
  auto made = logger_.prepare_next_file();
  if (made) {
    if (lacks_next_file_) record_next_file();
    return made;
  }
  if (made.error().code != ExitCode::disk_full) return made;
  record_lack(made.error());
  return {};
}

void LoggerThread::record_lack(const Error& error) {
  const auto now = Clock::now();
  settings_.metrics->failed_preallocations.add();
  if (!lacks_next_file_ || now >= warn_at_) {
    log_->warn(
        "logger {} of node {}: its next file cannot be made: {}; {} bytes are left in the current "
        "file: free disk space before it is full, or the cluster ends with exit code {}",
        settings_.ordinal, settings_.node, error.message, logger_.bytes_left(),
        static_cast<int>(ExitCode::disk_full));
    warn_at_ = now + kWarningPause;
  }
  lacks_next_file_ = true;
  retry_at_ = now + kPreallocationPause;
  // Relaxed: the flag guards no other data. `atoll status` shows the flag. The coordinator polls
  // it, and takes a snapshot if it is set.
  settings_.metrics->lacks_next_file.store(1, std::memory_order_relaxed);
}

void LoggerThread::record_next_file() {
  CHECK(lacks_next_file_);
  log_->info("logger {} of node {} has room for its next file again", settings_.ordinal,
             settings_.node);
  lacks_next_file_ = false;
  // Relaxed: the flag guards no other data.
  settings_.metrics->lacks_next_file.store(0, std::memory_order_relaxed);
}

void LoggerThread::record_batch(const LogWriterCounters& before, uint64_t epoch) {
  LoggerMetrics& metrics = *settings_.metrics;
  const LogWriterCounters& now = logger_.counters();
  CHECK(now.bytes >= before.bytes && now.blocks >= before.blocks);
  metrics.written_bytes.add(now.bytes - before.bytes);
  metrics.blocks.add(now.blocks - before.blocks);
  metrics.files.add(now.files - before.files);
  metrics.batches.add();
  metrics.batch_bytes.store(logger_.latest().written_bytes, std::memory_order_relaxed);
  const uint64_t current = settings_.view->control->epochs.current.load(std::memory_order_relaxed);
  metrics.epoch_lag.store(current - epoch, std::memory_order_relaxed);
}

/// Returns the time since the end of the first epoch that this logger has to make durable now.
uint64_t LoggerThread::waited_ns(uint64_t epoch) const {
  const EpochBlock& epochs = settings_.view->control->epochs;
  // Skips epochs up to the settled one, even if this logger has not closed them, because all their
  // commits are durable.
  const uint64_t done = std::max(logger_.durable_epoch(), latest_settled_epoch(epochs));
  const uint64_t ended_ns = epoch_end_ns(epochs, std::min(epoch, done + 1));
  return ended_ns == 0 ? 0 : ns_since(ended_ns, monotonic_time_ns());
}

void LoggerThread::record_stages(uint64_t waited_ns) {
  LoggerMetrics& metrics = *settings_.metrics;
  const EpochLogger::Batch& batch = logger_.latest();
  const uint64_t stages[kLoggerStageCount] = {waited_ns, batch.close_ns, batch.write_ns,
                                              batch.sync_ns};
  metrics.epoch_end_ns.add(waited_ns);
  metrics.close_ns.add(batch.close_ns);
  metrics.write_ns.add(batch.write_ns);
  metrics.sync_ns.add(batch.sync_ns);
  for (uint32_t stage = 0; stage < kLoggerStageCount; ++stage) {
    slot().stage_ns[stage].store(stages[stage], std::memory_order_relaxed);
  }
  slot().synced_at_ns.store(monotonic_time_ns(), std::memory_order_relaxed);
}

Result<void> LoggerThread::make_durable(uint64_t epoch) {
  CHECK(epoch > logger_.durable_epoch());
  const LogWriterCounters before = logger_.counters();
  const uint64_t waited_ns = this->waited_ns(epoch);
  ATOLL_TRY(logger_.close(epoch));
  CHECK(logger_.durable_epoch() == epoch);
  record_stages(waited_ns);
  record_batch(before, epoch);
  if (lacks_next_file_ && !logger_.wants_next_file()) record_next_file();
  // Release: everything up to this epoch is durable on the device.
  slot().durable_epoch.store(logger_.durable_epoch(), std::memory_order_release);
  signal_coordinator();
  return {};
}

}  // namespace atolldb
