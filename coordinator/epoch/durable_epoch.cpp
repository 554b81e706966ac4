#include "coordinator/epoch/durable_epoch.h"

#include <algorithm>
#include <utility>

#include "coordinator/epoch/epoch_clock.h"
#include "shared/base/check.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {

uint64_t durable_on_all(const std::vector<NodeShared*>& nodes) {
  uint64_t durable = kMaxEpoch;
  for (NodeShared* node : nodes) {
    for (uint32_t logger = 0; logger < node->logger_count; ++logger) {
      // Acquire pairs with the logger's release: the epoch is durable on the device.
      durable =
          std::min(durable, node->loggers[logger].durable_epoch.load(std::memory_order_acquire));
    }
  }
  return durable;
}

bool wait_until_durable(const ControlSegment& control, uint64_t epoch,
                        std::chrono::milliseconds patience) {
  const EpochBlock& epochs = control.epochs;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    // Acquire, so that `durable` is loaded later. An increase that the load of `durable` misses
    // changes the signal and ends the wait.
    const uint32_t signal = epochs.durable_signal.load(std::memory_order_acquire);
    if (epochs.durable.load(std::memory_order_acquire) >= epoch) return true;
    const auto now = std::chrono::steady_clock::now();
    // Acquire pairs with the release of the coordinator, which changes the state.
    const uint32_t state = control.state.load(std::memory_order_acquire);
    if (now >= end || state >= kClusterFailedFrom) return false;
    wait_on(epochs.durable_signal, signal,
            std::min<std::chrono::nanoseconds>(end - now, kMaxSleep));
  }
}

DurableEpoch::DurableEpoch(EpochBlock& epochs, std::vector<NodeShared*> nodes, OnFailure on_failure)
    : epochs_(epochs),
      nodes_(std::move(nodes)),
      on_failure_(std::move(on_failure)),
      times_(epochs_, nodes_) {}

void DurableEpoch::start() {
  CHECK(!thread_.joinable() && on_failure_);
  thread_ = std::thread([this] { run(); });
}

void DurableEpoch::stop() {
  stop_.store(true, std::memory_order_release);
  epochs_.logger_signal.fetch_add(1, std::memory_order_release);
  wake(epochs_.logger_signal, kWakeAll);
  if (thread_.joinable()) thread_.join();
}

void DurableEpoch::run() {
  name_thread("durable");
  become_prompt_thread();
  bool has_failed = false;
  for (;;) {
    // Acquire, so that the loggers' words are loaded later. If these loads miss a change, the
    // change also changes the signal and so ends the wait below.
    const uint32_t signal = epochs_.logger_signal.load(std::memory_order_acquire);
    const bool ends = stop_.load(std::memory_order_acquire);
    raise();
    if (!has_failed) has_failed = report_failure();
    if (ends) return;
    wait_on(epochs_.logger_signal, signal, kMaxSleep);
  }
}

/// Raises the durable epoch, for which clients wait. Records the times only afterwards.
void DurableEpoch::raise() {
  const uint64_t seen_ns = monotonic_time_ns();
  const uint64_t done = latest_settled_epoch(epochs_);
  const uint64_t durable = durable_on_all(nodes_);
  // Relaxed: this thread is the only writer.
  const bool is_raised = durable > epochs_.durable.load(std::memory_order_relaxed);
  raise_durable(epochs_, durable);
  const uint64_t published_ns = monotonic_time_ns();
  times_.record_markers(seen_ns);
  if (is_raised) times_.record_durable(done, durable, seen_ns, published_ns);
}

bool DurableEpoch::report_failure() const {
  for (size_t node = 0; node < nodes_.size(); ++node) {
    for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
      const uint32_t code = nodes_[node]->loggers[logger].failure.load(std::memory_order_acquire);
      if (code == 0) continue;
      on_failure_({static_cast<ExitCode>(code),
                   "logger " + std::to_string(logger) + " of node " + std::to_string(node) +
                       ": cannot write its log: nothing is acknowledged any more: the message of "
                       "that node names the file and the error"});
      return true;
    }
  }
  return false;
}

}  // namespace atolldb
