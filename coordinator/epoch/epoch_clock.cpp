#include "coordinator/epoch/epoch_clock.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "shared/memory/dirty_epoch.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// min(current, begin epochs of all threads that hold page references).
uint64_t oldest_begin(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  // seq_cst, before the slots: pairs with the exchange and the fence in WorkerContext::enter. A
  // thread whose slot is published after its scan here may have loaded `current` much earlier, and
  // so may publish an epoch below the answer. That is harmless: it loads its pointers after its
  // exchange. A page may be reused only if its retire epoch is below the answer. So it was unlinked
  // before `current` got the value that is loaded here, and such a thread finds no pointer to it.
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

/// Every logger writes a marker for this epoch: the latest one that is over and in which some node
/// has committed (R27), or the closing one.
void want_marker(EpochBlock& epochs, uint64_t epoch) {
  if (!raise_to(epochs.marker_wanted, epoch)) return;
  // Release: who sees the signal changed sees the new epoch.
  epochs.marker_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.marker_signal, kWakeAll);
}

/// The marker of the last commit names only earlier epochs as durable: damage to it would look like
/// the torn tail of a crash for as long as the cluster is idle. So every logger writes one more
/// marker, which names the last commit's epoch (R51). `closed` was loaded before `dirty`: no commit
/// is in the epochs after `dirty` up to `closed`.
void want_closing_marker(EpochBlock& epochs, uint64_t dirty, uint64_t closed, uint64_t durable) {
  const uint64_t wanted = epochs.marker_wanted.load(std::memory_order_relaxed);
  // A marker after the last commit's was wanted before, or nothing was committed yet; or a logger
  // has not written the last commit's marker yet, so that no block could name its epoch.
  if (wanted == dirty && durable >= wanted) want_marker(epochs, closed);
}

}  // namespace

uint64_t dirty_epoch(const std::vector<NodeShared*>& nodes) { return latest_dirty_epoch(nodes); }

void start_epochs(EpochBlock& epochs, uint64_t start_epoch) {
  epochs.current.store(start_epoch, std::memory_order_relaxed);
  epochs.closed.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.marker_wanted.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.durable.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.settled.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.oldest_begin.store(start_epoch, std::memory_order_relaxed);
}

bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes, bool is_logged,
                 uint64_t epochs_until_closing) {
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
    // A node that is dirty in the current epoch is seen by the next tick.
    want_marker(epochs, std::min(dirty, epochs.current.load(std::memory_order_relaxed) - 1));
    // Acquire pairs with the release of whoever raised it: what it says is on the devices.
    const uint64_t durable = epochs.durable.load(std::memory_order_acquire);
    if (dirty != 0 && last_closed >= dirty + epochs_until_closing) {
      want_closing_marker(epochs, dirty, last_closed, durable);
    }
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
      epochs_until_closing_(std::max<uint64_t>(1, kClosingAfter / interval)),
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
      is_held = !tick_epochs(epochs_, nodes_, is_logged_, epochs_until_closing_);
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
