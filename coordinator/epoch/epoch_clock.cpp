#include "coordinator/epoch/epoch_clock.h"

#include <algorithm>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/memory/node_layout.h"
#include "shared/process/start_up.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

/// Returns min(current, begin epochs of all threads that hold page references).
uint64_t oldest_begin(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  // seq_cst: this load precedes those of the slots. It pairs with the exchange and the fence in
  // WorkerContext::enter.
  //
  // A thread may publish its slot after this scan and still publish an epoch below the returned
  // value, because it loaded `current` much earlier. This is harmless, because the thread loads its
  // pointers after its exchange. A page may be reused only if its retire epoch is below the
  // returned value. Such a page was unlinked before `current` got the value that is loaded here, so
  // the thread finds no pointer to it.
  uint64_t oldest = epochs.current.load(std::memory_order_seq_cst);
  for (NodeShared* node : nodes) {
    for (uint32_t i = 0; i < node->slot_count; ++i) {
      // A thread without page references has kIdleEpoch, the largest number. seq_cst: this load
      // follows that of `current`.
      oldest = std::min(oldest, node->slot(i).begin_epoch.load(std::memory_order_seq_cst));
    }
  }
  return oldest;
}

/// Returns the largest epoch that is closed on all nodes (R26).
uint64_t closed_epoch(const EpochBlock& epochs, const std::vector<NodeShared*>& nodes) {
  // seq_cst: this load precedes those of the in-commit epochs (R21). A commit whose in-commit epoch
  // is not seen here loads the current epoch after this load, so its epoch is later than `closed`.
  uint64_t closed = epochs.current.load(std::memory_order_seq_cst) - 1;
  for (NodeShared* node : nodes) {
    for (uint32_t i = 0; i < node->slot_count; ++i) {
      const uint64_t in_commit = node->slot(i).in_commit_epoch.load(std::memory_order_seq_cst);
      if (in_commit != 0) closed = std::min(closed, in_commit - 1);
    }
  }
  return closed;
}

/// Raises the word to `value`; the word never falls. Returns whether it was raised.
bool raise_to(std::atomic<uint64_t>& word, uint64_t value) {
  // Each word has one writer. Release pairs with the readers' acquire: readers see the slots and
  // words from which the writer computed `value`, or newer values.
  if (value <= word.load(std::memory_order_relaxed)) return false;
  word.store(value, std::memory_order_release);
  return true;
}

/// Tells every logger to write a marker for this epoch. It is the latest past epoch in which some
/// node has committed (R27), or the epoch of the closing marker.
void want_marker(EpochBlock& epochs, uint64_t epoch) {
  if (!raise_to(epochs.marker_wanted, epoch)) return;
  // Release: a thread that sees the changed signal sees the new epoch.
  epochs.marker_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.marker_signal, kWakeAll);
}

/// Tells every logger to write a closing marker, which names the last commit's epoch as durable
/// (R51). The marker of the last commit names only earlier epochs. While the cluster is idle,
/// damage to that marker would look like the torn tail of a crash. `closed` was loaded before
/// `dirty`, so no commit is in the epochs after `dirty` up to `closed`.
void want_closing_marker(EpochBlock& epochs, uint64_t dirty, uint64_t closed, uint64_t durable) {
  const uint64_t wanted = epochs.marker_wanted.load(std::memory_order_relaxed);
  // Skips the request if a marker of a later epoch was requested before. Also skips it while a
  // logger still has to write the last commit's marker, because the closing marker could not name
  // that epoch as durable.
  if (wanted == dirty && durable >= wanted) want_marker(epochs, closed);
}

/// Tells every logger to write a marker that makes `epoch` durable, if the epoch is over. Waits
/// until the last commit is durable, so that the marker names the epoch of that commit, as a
/// closing marker does.
void want_requested_marker(EpochBlock& epochs, uint64_t epoch, uint64_t dirty, uint64_t closed,
                           uint64_t durable) {
  if (durable < epoch && epoch <= closed && durable >= dirty) want_marker(epochs, closed);
}

}  // namespace

uint64_t dirty_epoch(const std::vector<NodeShared*>& nodes) { return latest_dirty_epoch(nodes); }

void start_epochs(EpochBlock& epochs, uint64_t start_epoch) {
  CHECK(start_epoch != 0);
  epochs.current.store(start_epoch, std::memory_order_relaxed);
  epochs.closed.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.marker_wanted.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.durable.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.settled.store(start_epoch - 1, std::memory_order_relaxed);
  epochs.oldest_begin.store(start_epoch, std::memory_order_relaxed);
}

bool tick_epochs(EpochBlock& epochs, const std::vector<NodeShared*>& nodes, bool is_logged,
                 uint64_t epochs_until_closing, uint64_t close_up_to, bool holds_settled) {
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  const uint64_t closed = epochs.closed.load(std::memory_order_relaxed);
  CHECK(closed < current);
  const bool advances = current < kMaxEpoch && current - closed <= kMaxOpenEpochs;
  if (advances) {
    epochs.ended_ns[current % kEpochEnds].store(monotonic_time_ns(), std::memory_order_relaxed);
    // seq_cst: the serialization point of commits (R21).
    epochs.current.store(current + 1, std::memory_order_seq_cst);
  }
  raise_to(epochs.oldest_begin, oldest_begin(epochs, nodes));
  raise_to(epochs.closed, closed_epoch(epochs, nodes));
  if (is_logged) {
    const uint64_t last_closed = epochs.closed.load(std::memory_order_relaxed);
    const uint64_t dirty = dirty_epoch(nodes);
    // Requests no marker for the current epoch. A later tick requests it, after the epoch has
    // ended.
    want_marker(epochs, std::min(dirty, epochs.current.load(std::memory_order_relaxed) - 1));
    // Acquire pairs with the release in raise_durable: the epoch is durable on the devices.
    const uint64_t durable = epochs.durable.load(std::memory_order_acquire);
    if (dirty != 0 && last_closed >= dirty + epochs_until_closing) {
      want_closing_marker(epochs, dirty, last_closed, durable);
    }
    want_requested_marker(epochs, close_up_to, dirty, last_closed, durable);
    if (!holds_settled || fault::settled_during_replay) {
      raise_to(epochs.settled, durable >= std::min(dirty, last_closed) ? last_closed : durable);
    }
  } else {
    raise_to(epochs.settled, epochs.closed.load(std::memory_order_relaxed));
    raise_durable(epochs, epochs.closed.load(std::memory_order_relaxed));
  }
  return advances;
}

void raise_durable(EpochBlock& epochs, uint64_t epoch) {
  if (!raise_to(epochs.durable, epoch)) return;
  // Release: a thread that sees the changed signal sees the new epoch.
  epochs.durable_signal.fetch_add(1, std::memory_order_release);
  wake(epochs.durable_signal, kWakeAll);
}

bool is_end_requested(const EpochBlock& epochs) {
  // Relaxed: this thread is the only writer.
  const uint64_t current = epochs.current.load(std::memory_order_relaxed);
  // Acquire pairs with the raise in request_epoch_end.
  return current <= kLastEarlyEpoch &&
         epochs.end_requested.load(std::memory_order_acquire) >= current;
}

bool waits_for_loggers(const EpochBlock& epochs) {
  // Acquire pairs with the release in raise_durable: the epoch is durable on the devices.
  return epochs.durable.load(std::memory_order_acquire) <
         epochs.marker_wanted.load(std::memory_order_relaxed);
}

EpochClock::EpochClock(EpochBlock& epochs, std::vector<NodeShared*> nodes, EpochIntervals intervals,
                       bool is_logged, Logger logger)
    : epochs_(epochs),
      nodes_(std::move(nodes)),
      intervals_(intervals),
      epochs_until_closing_(
          std::max<uint64_t>(1, static_cast<uint64_t>(kClosingAfter / intervals.regular))),
      is_logged_(is_logged),
      logger_(std::move(logger)) {
  CHECK(intervals_.regular.count() > 0 && intervals_.shortest.count() > 0);
}

void EpochClock::start() {
  CHECK(!thread_.joinable() && !nodes_.empty());
  thread_ = std::thread([this] { run(); });
}

void EpochClock::stop() {
  {
    const std::lock_guard guard(mutex_);
    stop_.store(true, std::memory_order_relaxed);
  }
  ticked_.notify_all();
  // The clock sleeps on either word.
  for (std::atomic<uint32_t>* const signal : {&epochs_.end_signal, &epochs_.durable_signal}) {
    signal->fetch_add(1, std::memory_order_release);
    wake(*signal, kWakeAll);
  }
  if (thread_.joinable()) thread_.join();
}

void EpochClock::close_up_to(uint64_t epoch) {
  CHECK(epoch <= epochs_.current.load(std::memory_order_relaxed));
  // Relaxed: the clock loads the word at each tick, so a later tick sees the request.
  uint64_t seen = close_up_to_.load(std::memory_order_relaxed);
  while (seen < epoch &&
         !close_up_to_.compare_exchange_weak(seen, epoch, std::memory_order_relaxed)) {
  }
}

void EpochClock::hold_settled(uint64_t epoch) {
  CHECK(is_logged_ && epoch < epochs_.current.load(std::memory_order_relaxed));
  const std::lock_guard guard(mutex_);  // no tick is in progress
  holds_settled_ = true;
  // Relaxed: the requests that begin the replay make the word visible to the nodes.
  epochs_.settled.store(epoch, std::memory_order_relaxed);
}

void EpochClock::release_settled(uint64_t epoch) {
  std::unique_lock lock(mutex_);
  CHECK(holds_settled_ && epoch < epochs_.current.load(std::memory_order_relaxed));
  holds_settled_ = false;
  ticked_.wait(lock, [&] {
    return stop_.load(std::memory_order_relaxed) ||
           epochs_.settled.load(std::memory_order_relaxed) >= epoch;
  });
}

bool EpochClock::wait_until_begun_after(uint64_t epoch, std::chrono::milliseconds patience) {
  CHECK(epoch <= epochs_.current.load(std::memory_order_relaxed));
  std::unique_lock lock(mutex_);
  const auto has_begun = [&] {
    return epochs_.oldest_begin.load(std::memory_order_acquire) > epoch;
  };
  ticked_.wait_for(lock, patience,
                   [&] { return stop_.load(std::memory_order_relaxed) || has_begun(); });
  return has_begun();
}

/// Sleeps until `deadline_ns`, or, if the current epoch may end early, until that and
/// `earliest_ns`. Returns whether the epoch ends early. Also returns after `stop`.
bool EpochClock::sleep(uint64_t earliest_ns, uint64_t deadline_ns) const {
  for (;;) {
    // Acquire, so that the words below are loaded later. If these loads miss a change, the change
    // also changes a signal, and so ends the wait.
    const uint32_t end_signal = epochs_.end_signal.load(std::memory_order_acquire);
    const uint32_t durable_signal = epochs_.durable_signal.load(std::memory_order_acquire);
    const uint64_t now_ns = monotonic_time_ns();
    if (now_ns >= deadline_ns || stop_.load(std::memory_order_relaxed)) return false;
    const bool is_requested = is_end_requested(epochs_);
    const bool needs_loggers = is_requested && waits_for_loggers(epochs_);
    const bool may_end = is_requested && !needs_loggers;
    if (may_end && now_ns >= earliest_ns) return true;
    const uint64_t end_ns = may_end ? std::min(earliest_ns, deadline_ns) : deadline_ns;
    wait_on(needs_loggers ? epochs_.durable_signal : epochs_.end_signal,
            needs_loggers ? durable_signal : end_signal, std::chrono::nanoseconds(end_ns - now_ns));
  }
}

void EpochClock::run() {
  name_thread("epochs");
  become_prompt_thread();
  const auto ns = [](std::chrono::nanoseconds time) { return static_cast<uint64_t>(time.count()); };
  const uint64_t interval_ns = ns(intervals_.regular);
  uint64_t now_ns = monotonic_time_ns();
  uint64_t deadline_ns = now_ns;
  bool was_held = false;
  // Relaxed: the flag only ends the loop.
  while (!stop_.load(std::memory_order_relaxed)) {
    deadline_ns += interval_ns;
    const bool is_early = sleep(now_ns + ns(intervals_.shortest), deadline_ns);
    if (is_early) epochs_.early_ends.fetch_add(1, std::memory_order_relaxed);
    bool is_held = false;
    {
      // Under this lock a waiter checks the epochs and begins to sleep, so it misses no tick. Only
      // drops and snapshots wait here, so the lock is rarely contended.
      const std::lock_guard guard(mutex_);
      is_held = !tick_epochs(epochs_, nodes_, is_logged_, epochs_until_closing_,
                             close_up_to_.load(std::memory_order_relaxed), holds_settled_);
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
    now_ns = monotonic_time_ns();
    // The next interval begins at an early end. After a delay of more than a tick (a stopped
    // process, a busy machine) the clock skips ticks instead of catching up.
    if (is_early || now_ns > deadline_ns + interval_ns) deadline_ns = now_ns;
  }
}

}  // namespace atolldb
