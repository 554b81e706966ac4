#include "coordinator/epoch/epoch_clock.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// min(current, begin epochs of all threads that hold page references).
uint64_t oldest_begin(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  // seq_cst, before the slots: pairs with the exchange in WorkerContext::enter. A slot that is
  // published after its scan belongs to a thread that loaded `current` no earlier than it stood
  // here, and that loads its pointers after the unlinking of everything retired before.
  uint64_t oldest = epochs.current.load(std::memory_order_seq_cst);
  for (NodeShared* node : nodes) {
    for (uint32_t i = 0; i < node->slot_count; ++i) {
      // kIdleEpoch is the largest number. seq_cst: as above.
      oldest = std::min(oldest, node->slot(i).begin_epoch.load(std::memory_order_seq_cst));
    }
  }
  return oldest;
}

/// The largest epoch that is closed on all nodes (R26).
uint64_t closed_epoch(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  // seq_cst, before the in-commit words (R21): a commit whose word is not seen here loads the
  // current epoch after this and gets a later one.
  uint64_t closed = epochs.current.load(std::memory_order_seq_cst) - 1;
  for (NodeShared* node : nodes) {
    for (uint32_t i = 0; i < node->slot_count; ++i) {
      const uint64_t in_commit = node->slot(i).in_commit_epoch.load(std::memory_order_seq_cst);
      if (in_commit != 0) closed = std::min(closed, in_commit - 1);
    }
  }
  return closed;
}

/// Publishes `value` unless the word is there already: these words never run backward. Whether it
/// did.
bool raise_to(std::atomic<uint64_t>& word, uint64_t value) {
  // One writer. Release pairs with the readers' acquire: what was concluded from the slots holds.
  if (value <= word.load(std::memory_order_relaxed)) return false;
  word.store(value, std::memory_order_release);
  return true;
}

/// The latest epoch that a commit of any node is in. Loaded after an epoch was found closed it
/// names all commits of that epoch: they made it dirty before they cleared their in-commit words
/// (R27).
uint64_t dirty_epoch(const std::vector<NodeShared*>& nodes) {
  uint64_t dirty = 0;
  for (NodeShared* node : nodes) {
    dirty = std::max(dirty, node->dirty_epoch.load(std::memory_order_seq_cst));
  }
  return dirty;
}

/// Every logger writes a marker for the latest epoch that is over and in which some node has
/// committed (R27). A node that is dirty in the current epoch only is seen by the next tick.
void want_marker(EpochBlock& epochs, uint64_t dirty) {
  const uint64_t last_over = epochs.current.load(std::memory_order_relaxed) - 1;
  if (!raise_to(epochs.marker_wanted, std::min(dirty, last_over))) return;
  // Release: who sees the signal changed sees the new epoch.
  epochs.marker_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.marker_signal, kWakeAll);
}

}  // namespace

void start_epochs(EpochBlock& epochs, uint64_t start_epoch) {
  epochs.current.store(start_epoch, std::memory_order_relaxed);
  epochs.closed.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.marker_wanted.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.durable.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.settled.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.oldest_begin.store(start_epoch, std::memory_order_relaxed);
}

bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes, bool is_logged) {
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  const uint64_t closed = epochs.closed.load(std::memory_order_relaxed);
  const bool advances = current < kMaxEpoch && current - closed <= kMaxOpenEpochs;
  // seq_cst: the serialization point of commits (R21).
  if (advances) epochs.current.store(current + 1, std::memory_order_seq_cst);
  raise_to(epochs.oldest_begin, oldest_begin(epochs, nodes));
  raise_to(epochs.closed, closed_epoch(epochs, nodes));
  if (is_logged) {
    const uint64_t last_closed = epochs.closed.load(std::memory_order_relaxed);
    const uint64_t dirty = dirty_epoch(nodes);
    want_marker(epochs, dirty);
    // Acquire pairs with the release of whoever raised it: what it says is on the devices.
    const uint64_t durable = epochs.durable.load(std::memory_order_acquire);
    raise_to(epochs.settled, durable >= std::min(dirty, last_closed) ? last_closed : durable);
  } else {
    raise_to(epochs.settled, epochs.closed.load(std::memory_order_relaxed));
    raise_durable(epochs, epochs.closed.load(std::memory_order_relaxed));
  }
  return advances;
}

void raise_durable(EpochBlock& epochs, uint64_t epoch) {
  if (!raise_to(epochs.durable, epoch)) return;
  // Release: who sees the signal changed sees the new epoch.
  epochs.durable_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.durable_signal, kWakeAll);
}

EpochClock::EpochClock(EpochBlock& epochs, std::vector<NodeShared*> nodes,
                       std::chrono::microseconds interval, bool is_logged, Logger logger)
    : epochs_(epochs),
      nodes_(std::move(nodes)),
      interval_(interval),
      is_logged_(is_logged),
      logger_(std::move(logger)) {}

void EpochClock::start() {
  thread_ = std::thread([this] { run(); });
}

void EpochClock::stop() {
  {
    const std::lock_guard guard(mutex_);
    stop_.store(true, std::memory_order_relaxed);
  }
  ticked_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool EpochClock::wait_until_begun_after(uint64_t epoch) {
  std::unique_lock lock(mutex_);
  ticked_.wait(lock, [&] {
    return stop_.load(std::memory_order_relaxed) ||
           epochs_.oldest_begin.load(std::memory_order_acquire) > epoch;
  });
  return !stop_.load(std::memory_order_relaxed);
}

bool EpochClock::wait_until_begun_after(uint64_t epoch, std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  const auto has_begun = [&] {
    return epochs_.oldest_begin.load(std::memory_order_acquire) > epoch;
  };
  ticked_.wait_for(lock, patience,
                   [&] { return stop_.load(std::memory_order_relaxed) || has_begun(); });
  return has_begun();
}

void EpochClock::run() {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t interval_ns = std::chrono::nanoseconds(interval_).count();
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  int64_t deadline_ns = now.tv_sec * kSecondNs + now.tv_nsec;
  bool was_held = false;
  // Relaxed: only ends the loop.
  while (!stop_.load(std::memory_order_relaxed)) {
    deadline_ns += interval_ns;
    const timespec deadline{deadline_ns / kSecondNs, deadline_ns % kSecondNs};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) != 0) {
    }
    bool is_held = false;
    {
      // So that a waiter cannot look just before and sleep just after. Uncontended but for DDL.
      const std::lock_guard guard(mutex_);
      is_held = !tick_epochs(epochs_, nodes_, is_logged_);
    }
    ticked_.notify_all();
    if (is_held && !was_held) {
      logger_->warn(
          "the epoch clock waits at epoch {}: an older epoch is still open, or this is "
          "the last one",
          epochs_.current.load(std::memory_order_relaxed));
    }
    was_held = is_held;
    ticks_.fetch_add(1, std::memory_order_relaxed);
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t now_ns = now.tv_sec * kSecondNs + now.tv_nsec;
    // Late by more than a tick (a stopped process, a busy machine): no burst to catch up.
    if (now_ns - deadline_ns > interval_ns) deadline_ns = now_ns;
  }
}

}  // namespace atolldb
