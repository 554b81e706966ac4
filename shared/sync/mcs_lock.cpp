#include "shared/sync/mcs_lock.h"

#include <algorithm>

#include "shared/sync/wait_word.h"

namespace atolldb {

namespace {
// A thread spins briefly and tries to take the lock before it queues (R24). A critical section
// takes only about a microsecond. But if there are more threads than cores, the holder may be
// descheduled. Sleepers in a queue would then get the lock one context switch at a time.
constexpr int kSpinsBeforeQueueing = 100;
constexpr int kSpinsBeforeSleeping = 400;
/// The head of a queue polls the word of the holder, so it makes longer and longer pauses.
constexpr int kMostPauses = 16;
/// After its spins, the head sleeps again and again for this long. No thread wakes it, because the
/// holder does not know it. It polls after each sleep, so no wake-up can be lost. The cost: a lock
/// that becomes free during a nap stays free until the nap ends. Other threads leave it to the
/// head.
constexpr std::chrono::microseconds kNap{50};
}  // namespace

Status McsLocker::lock_contended(McsWord& word, UniversalName name) {
  DCHECK(!holds(word));  // the thread would wait for itself
  for (int spin = 0; spin < kSpinsBeforeQueueing; ++spin) {
    spin_pause();
    if (try_lock(word)) return Status::ok;
  }
  // A thread that has given up a wait is still in that queue, and must not use its block again.
  if (has_failed()) return Status::cluster_failed;
  DCHECK(block_->lock_name.load(std::memory_order_relaxed) == 0);  // waits for no other lock
  block_->lock_name.store(name.word(), std::memory_order_relaxed);
  block_->successor.store(0, std::memory_order_relaxed);
  block_->state.store(WaitBlock::kWaiting, std::memory_order_relaxed);
  // Release: a successor finds the block prepared. Acquire: so does this thread find the block of
  // its predecessor. A mark of an early lock is lost; the lock then seems to be an ordinary one.
  const LockCode before = word.waiters.exchange(code_, std::memory_order_acq_rel);
  DCHECK(before != code_);
  Status status = Status::ok;
  if (before != 0 && before != kEarlyMark) status = await_head_role(before);
  if (status == Status::ok) status = take_as_head(word);
  // If the cluster has failed, this thread gives up. Threads that queue after its block never get
  // the lock. That is harmless, because their waits end, too.
  if (status != Status::ok) return status;
  leave_queue(word);
  block_->lock_name.store(0, std::memory_order_relaxed);
  return Status::ok;
}

/// Waits until the predecessor has taken the lock and has left the queue.
Status McsLocker::await_head_role(LockCode predecessor) {
  std::atomic<uint32_t>& state = block_->state;
  // Release: a predecessor that reads this name also sees the state kWaiting of this block.
  block_of(predecessor).successor.store(code_, std::memory_order_release);
  for (int spin = 0;; ++spin) {
    // Relaxed: the writes under the lock pass with `holder`, not with the role.
    if (state.load(std::memory_order_relaxed) == WaitBlock::kHead) return Status::ok;
    if (spin < kSpinsBeforeSleeping) {
      spin_pause();
      continue;
    }
    uint32_t waiting = WaitBlock::kWaiting;
    if (state.compare_exchange_strong(waiting, WaitBlock::kSleeping, std::memory_order_relaxed,
                                      std::memory_order_relaxed) ||
        waiting == WaitBlock::kSleeping) {
      wait_on(state, WaitBlock::kSleeping, kMaxSleep);
    }
    if (has_failed()) return Status::cluster_failed;
  }
}

/// Polls the lock until it is free, and takes it. A thread that has seen an empty queue may take it
/// first. Then the head continues to poll.
Status McsLocker::take_as_head(McsWord& word) {
  // No other thread changes the state of a head, so it sleeps for the whole nap.
  block_->state.store(WaitBlock::kHead, std::memory_order_relaxed);
  int pauses = 1;
  for (int spin = 0; spin < kSpinsBeforeSleeping; spin += pauses) {
    if (try_take(word)) return Status::ok;
    for (int pause = 0; pause < pauses; ++pause) spin_pause();
    pauses = std::min(2 * pauses, kMostPauses);
  }
  while (!try_take(word)) {
    if (has_failed()) return Status::cluster_failed;
    // System call: the holder has had the lock for longer than a commit, so it may have no core.
    wait_on(block_->state, WaitBlock::kHead, kNap);
  }
  return Status::ok;
}

/// Makes the successor the head of the queue, or leaves an empty queue. REQUIRES: this thread is
/// the head, and holds the lock.
void McsLocker::leave_queue(McsWord& word) {
  LockCode expected = code_;
  // Relaxed: the next thread that queues finds no name, so it reads nothing of this thread.
  if (block_->successor.load(std::memory_order_relaxed) == 0 &&
      word.waiters.compare_exchange_strong(expected, 0, std::memory_order_relaxed,
                                           std::memory_order_relaxed)) {
    return;
  }
  const uint32_t successor = await_successor();
  if (successor == 0) return;  // the cluster has failed
  DCHECK(successor != code_);
  uint32_t waiting = WaitBlock::kWaiting;
  if (block_of(successor).state.compare_exchange_strong(
          waiting, WaitBlock::kHead, std::memory_order_relaxed, std::memory_order_relaxed)) {
    return;
  }
  // The successor sleeps. If it woke up now, it could take this thread's core, and wait for a lock
  // whose holder then has no core.
  if (sleeper_count_ == kMostSleepers) return make_head(successor);
  sleepers_[sleeper_count_++] = {&word, successor};
}

void McsLocker::make_head(uint32_t successor) {
  std::atomic<uint32_t>& state = block_of(successor).state;
  const uint32_t before = state.exchange(WaitBlock::kHead, std::memory_order_relaxed);
  DCHECK(before != WaitBlock::kHead);  // only one predecessor hands its role over
  // A system call, but only if the successor has waited for longer than its spins.
  if (before == WaitBlock::kSleeping) wake(state, 1);
}

void McsLocker::wake_sleeper(const McsWord& word) {
  DCHECK(!holds(word));
  for (uint32_t i = 0; i < sleeper_count_; ++i) {
    if (sleepers_[i].word != &word) continue;
    const uint32_t successor = sleepers_[i].successor;
    sleepers_[i] = sleepers_[--sleeper_count_];
    return make_head(successor);
  }
}

/// Returns the name of the successor, or 0 if the cluster has failed. The successor has put itself
/// into `waiters`, but may not have stored its name in this block yet. That takes a few
/// instructions, unless the thread is descheduled or died in between.
uint32_t McsLocker::await_successor() {
  uint32_t successor = 0;
  uint32_t turns = 0;
  // Acquire pairs with the release in await_head_role.
  while ((successor = block_->successor.load(std::memory_order_acquire)) == 0) {
    if (spin_or_yield(turns) && has_failed()) break;
  }
  return successor;
}

}  // namespace atolldb
