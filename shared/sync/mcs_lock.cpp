#include "shared/sync/mcs_lock.h"

#include "shared/sync/wait_word.h"

namespace atolldb {

namespace {
// A thread spins briefly and tries to take the lock before it queues (R24). A critical section
// takes only about a microsecond. But if there are more threads than cores, the holder may be
// descheduled. Sleepers in a queue would then get the lock one context switch at a time.
constexpr int kSpinsBeforeQueueing = 100;
constexpr int kSpinsBeforeSleeping = 400;
}  // namespace

Status McsLocker::lock_contended(McsWord& word, McsBlock& block, uint32_t block_index) {
  for (int spin = 0; spin < kSpinsBeforeQueueing; ++spin) {
    spin_pause();
    if (try_acquire(word, block, block_index)) return Status::ok;
  }
  block.successor.store(0, std::memory_order_relaxed);
  block.state.store(McsBlock::kWaiting, std::memory_order_relaxed);
  // seq_cst (R21) pairs with the load in CommitProtocol::probe. If the exchange takes the lock, it
  // also pairs with the compare-and-swap in `unlock`.
  const uint32_t predecessor = word.tail.exchange(tail_of(block_index), std::memory_order_seq_cst);
  if (predecessor == 0) return Status::ok;
  // The predecessor is another block: a block that is used for two locks would wait for itself. In
  // a failed cluster `tail` may name a wait that this thread gave up.
  DCHECK(predecessor != tail_of(block_index) || has_failed());

  // Release: a predecessor that reads this name also sees the state kWaiting of this block.
  space_->block(predecessor).successor.store(tail_of(block_index), std::memory_order_release);

  for (int spin = 0;; ++spin) {
    // Acquire pairs with the exchange in hand_over: writes of the predecessor are visible.
    if (block.state.load(std::memory_order_acquire) == McsBlock::kGranted) return Status::ok;
    if (spin < kSpinsBeforeSleeping) {
      spin_pause();
      continue;
    }
    uint32_t waiting = McsBlock::kWaiting;
    if (block.state.compare_exchange_strong(waiting, McsBlock::kSleeping, std::memory_order_acquire,
                                            std::memory_order_acquire) ||
        waiting == McsBlock::kSleeping) {
      wait_on(block.state, McsBlock::kSleeping, kMaxSleep);
    }
    // If the cluster has failed, this thread gives up. Threads that queue after its block never get
    // the lock. That is harmless, because their waits end, too.
    if (has_failed()) {
      if (block.state.load(std::memory_order_acquire) == McsBlock::kGranted) return Status::ok;
      return Status::cluster_failed;
    }
  }
}

void McsLocker::change_block(McsWord& word, uint32_t from, uint32_t to) {
  McsBlock& before = own_block(from);
  McsBlock& after = own_block(to);
  DCHECK(after.lock_name.load(std::memory_order_relaxed) == 0);
  // The new block names the lock before the word names the block (R22).
  after.lock_name.store(before.lock_name.load(std::memory_order_relaxed),
                        std::memory_order_relaxed);
  after.successor.store(0, std::memory_order_relaxed);
  uint32_t expected = tail_of(from);
  // seq_cst (R106) pairs with the load in CommitProtocol::probe, also if the exchange fails: then a
  // waiter has replaced the word before. Release: a thread that queues after the new block finds it
  // without a successor.
  if (!word.tail.compare_exchange_strong(expected, tail_of(to), std::memory_order_seq_cst,
                                         std::memory_order_seq_cst)) {
    // Release: an unlock that reads this name hands over to a block that is waiting.
    after.successor.store(await_successor(before), std::memory_order_release);
  }
  before.lock_name.store(0, std::memory_order_relaxed);
}

/// Returns the name of the successor, or 0 if the cluster has failed. The successor has put itself
/// into `tail`, but may not have stored its name in this block yet. That takes a few instructions,
/// unless the thread is descheduled or died in between.
uint32_t McsLocker::await_successor(McsBlock& block) {
  uint32_t successor = 0;
  for (int spin = 0; (successor = block.successor.load(std::memory_order_acquire)) == 0; ++spin) {
    if (spin < kSpinsBeforeSleeping) {
      spin_pause();
      continue;
    }
    wait_on(block.successor, 0, std::chrono::microseconds(50));
    if (has_failed()) break;
  }
  return successor;
}

void McsLocker::hand_over(McsBlock& block) {
  const uint32_t successor = await_successor(block);
  if (successor == 0) return;  // the cluster has failed
  McsBlock& next = space_->block(successor);
  DCHECK(&next != &block);
  // Release pairs with the acquiring loads of `state` in lock_contended: writes under the lock are
  // visible to the next holder.
  const uint32_t before = next.state.exchange(McsBlock::kGranted, std::memory_order_acq_rel);
  // The state is not kGranted, because only one predecessor grants a lock. A failed cluster is an
  // exception: a waiter that gave up may reuse its block.
  DCHECK(before != McsBlock::kGranted || has_failed());
  if (before == McsBlock::kSleeping) wake(next.state, 1);
}

}  // namespace atolldb
