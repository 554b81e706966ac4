// Queue lock over shared memory, released by a plain store. Source: [MCS91]. Rules R21 to R25.
//
// A lock word names its holder and the last waiter, in two separate words of 16 bits. A worker
// takes the lock by a compare-and-swap of `holder`, and releases it by a store. The store needs no
// locked instruction, so a commit does not wait until the stores of its records have drained.
//
// Only waiters queue. The first waiter, the head of the queue, polls `holder`. Each other waiter
// spins, then sleeps, on the wait block of its own worker, so it causes no remote traffic.
//
// Invariants:
// - The worker that `holder` names holds the lock. `waiters` only decides which thread is next.
// - Only the holder changes `holder` from its own name to 0.
// - A queue has at most one head: the waiter that found no waiter before it, or the one that the
//   head before it has made the head. A head leaves the queue only after it has taken the lock. It
//   makes its successor the head, at the latest when it unlocks.
// - `waiters` is kEarlyMark only while the holder holds the lock early: from the mark until the end
//   of the mark, both by the holder (R106).
// - A thread waits for one lock at a time, so each worker has one wait block. The block names the
//   lock that the worker waits for (R22).
// - Threads that wait without limit do so in universal order. All others only try.
// - Every wait checks the cluster state, and can end with `cluster_failed`. The waiter then remains
//   in the queue, and its thread never queues again. So its block is not used for another lock.
//
// Between the two loads of try_lock and its compare-and-swap, another worker may queue. Then the
// lock passes over that waiter. Each thread can do so once for each load, so waits are bounded: a
// thread that sees a waiter queues after it, or does not get the lock.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/base/status.h"

namespace atolldb {

/// Worker id: node << 8 | ordinal.
using WorkerId = uint16_t;

/// Name of a worker in a lock word: worker id + 1 (R25). 0: no worker.
using LockCode = uint16_t;

constexpr LockCode lock_code(WorkerId worker) {
  DCHECK(worker >> 8 < kMaxNodes);
  return static_cast<LockCode>(worker + 1);
}

/// Value of `waiters` that marks an early lock without waiters (R106). It names no worker.
inline constexpr LockCode kEarlyMark = 0xffff;
static_assert(((kMaxNodes - 1) << 8 | 0xff) + 1 < kEarlyMark);

/// The lock word of records and pages. Both halves have many writers. Lock operations never access
/// them together, because the memory model knows no accesses of mixed sizes.
struct alignas(4) McsWord {
  std::atomic<LockCode> holder{0};   // 0: free
  std::atomic<LockCode> waiters{0};  // last waiter; 0: none; kEarlyMark: none, and locked early

  /// Returns true if a worker holds the lock.
  bool is_locked() const { return holder.load(std::memory_order_seq_cst) != 0; }
  /// Returns true if a worker holds the lock early, and no other worker waits for it (R106).
  bool is_early() const { return waiters.load(std::memory_order_seq_cst) == kEarlyMark; }
  /// Returns true if no worker holds the lock or waits for it.
  bool is_unused() const { return !is_locked() && waiters.load(std::memory_order_relaxed) == 0; }
  /// REQUIRES: no other worker can find the word.
  void clear() {
    holder.store(0, std::memory_order_relaxed);
    waiters.store(0, std::memory_order_relaxed);
  }
};
static_assert(sizeof(McsWord) == 4);

/// Queue element of a worker that waits. Writers: the worker, its successor in the queue
/// (`successor`), and its predecessor (`state`). A cache line of its own, because the worker spins
/// on it.
struct alignas(64) WaitBlock {
  static constexpr uint32_t kWaiting = 0;
  static constexpr uint32_t kHead = 1;
  static constexpr uint32_t kSleeping = 2;

  std::atomic<uint32_t> state;
  std::atomic<uint32_t> successor;  // LockCode; 0: no successor yet
  std::atomic<uint64_t> lock_name;  // UniversalName of the lock waited for; 0: no lock
};
static_assert(sizeof(WaitBlock) == 64);

/// Addresses of every node's wait blocks in this process.
class LockSpace {
 public:
  /// `blocks`: one for each slot of the node, `count` in all.
  void set_node(uint32_t node, WaitBlock* blocks, uint32_t count) {
    CHECK(node < kMaxNodes && blocks != nullptr);
    CHECK(count >= 1 && count <= 256);  // ordinals have 8 bits
    nodes_[node] = {blocks, count};
  }
  WaitBlock& block(WorkerId worker) const {
    const Node& node = nodes_[worker >> 8];
    // The check is valid for a name that another process wrote, too: the segments of all processes
    // have the same layout.
    DCHECK(node.blocks != nullptr && (worker & 0xffu) < node.count);
    return node.blocks[worker & 0xff];
  }

 private:
  struct Node {
    WaitBlock* blocks = nullptr;
    uint32_t count = 0;
  };
  std::array<Node, kMaxNodes + 1> nodes_{};
};

/// Lock operations of one thread. Not shared between threads.
class McsLocker {
 public:
  /// Maximum number of sleepers that wait until this thread unlocks. The thread wakes further ones
  /// at once.
  static constexpr uint32_t kMostSleepers = 8;

  /// REQUIRES: `space` has the blocks of this node. `code` is lock_code(self). `cluster_state` is
  /// the word that every wait checks; values of `failed_from` or more end waits with
  /// cluster_failed.
  McsLocker(const LockSpace& space, WorkerId self, LockCode code,
            const std::atomic<uint32_t>& cluster_state, uint32_t failed_from)
      : space_(&space),
        block_(&space.block(self)),
        self_(self),
        code_(code),
        cluster_state_(&cluster_state),
        failed_from_(failed_from) {}

  /// Waits for the lock. Returns ok, or cluster_failed (then not locked). REQUIRES: the caller
  /// holds no lock, or only locks before `name` in universal order.
  Status lock(McsWord& word, UniversalName name) {
    if (try_lock(word)) [[likely]]
      return Status::ok;
    return lock_contended(word, name);
  }

  /// Never waits. Returns false if another thread holds the lock or waits for it.
  bool try_lock(McsWord& word) {
    // Relaxed: `waiters` only decides the order in which threads get the lock.
    if (word.waiters.load(std::memory_order_relaxed) != 0) return false;
    return try_take(word);
  }

  /// Releases the lock. The store is no read-modify-write, because the head of the queue polls the
  /// word, and the other waiters wait for the head.
  void unlock(McsWord& word) {
    release(word);
    if (has_sleepers()) [[unlikely]]
      wake_sleeper(word);
  }

  // The two steps of unlock, for a thread that unlocks many words. It releases all of them before
  // it wakes a thread, because a wake-up is a system call.
  void release(McsWord& word) {
    DCHECK(holds(word));
    DCHECK(word.waiters.load(std::memory_order_relaxed) != kEarlyMark);
    // Release pairs with the thread that takes the lock next, and with the loads of
    // CommitProtocol::probe (R21): writes under the lock are visible.
    word.holder.store(0, std::memory_order_release);
  }
  bool has_sleepers() const { return sleeper_count_ != 0; }
  /// Makes the sleeper that waits for this lock the head of its queue, if there is one. REQUIRES:
  /// this thread has released the lock, and has not locked it again.
  void wake_sleeper(const McsWord& word);

  /// Takes the lock early (R106), or returns false as try_lock does.
  bool try_lock_early(McsWord& word) {
    if (!try_lock(word)) return false;
    LockCode expected = 0;
    // If another thread waits already, the lock gets no mark, and seems to be an ordinary one.
    // seq_cst (R106): a verification that loads the mark sees all writes under earlier locks.
    word.waiters.compare_exchange_strong(expected, kEarlyMark, std::memory_order_seq_cst,
                                         std::memory_order_relaxed);
    return true;
  }
  /// Makes an early lock an ordinary one. REQUIRES: this thread holds the lock.
  void end_early(McsWord& word) {
    DCHECK(holds(word));
    LockCode expected = kEarlyMark;
    // seq_cst (R106): a verification that loads the mark precedes this operation, also if it fails
    // because a waiter has replaced the mark.
    word.waiters.compare_exchange_strong(expected, 0, std::memory_order_seq_cst,
                                         std::memory_order_seq_cst);
  }

  /// Returns true if this thread holds the lock. Other threads cannot change the result.
  bool holds(const McsWord& word) const {
    return is_own(word.holder.load(std::memory_order_relaxed));
  }
  /// Returns true if `holder` of a lock word is this thread.
  bool is_own(LockCode holder) const { return holder == code_; }

  WorkerId self() const { return self_; }

 private:
  /// The next head of a queue, which sleeps. This thread makes it the head when it unlocks `word`.
  struct Sleeper {
    const McsWord* word;
    uint32_t successor;
  };

  bool has_failed() const {
    return cluster_state_->load(std::memory_order_acquire) >= failed_from_;
  }
  bool try_take(McsWord& word) {
    LockCode expected = 0;
    if (word.holder.load(std::memory_order_relaxed) != 0) return false;
    // seq_cst (R21) pairs with the load in CommitProtocol::probe, which verifies reads.
    return word.holder.compare_exchange_strong(expected, code_, std::memory_order_seq_cst,
                                               std::memory_order_relaxed);
  }

  WaitBlock& block_of(uint32_t code) const {
    return space_->block(static_cast<WorkerId>(code - 1));
  }
  Status lock_contended(McsWord& word, UniversalName name);
  Status await_head_role(LockCode predecessor);
  Status take_as_head(McsWord& word);
  void leave_queue(McsWord& word);
  void make_head(uint32_t successor);
  uint32_t await_successor();

  const LockSpace* space_;
  WaitBlock* block_;  // of this worker
  WorkerId self_;
  LockCode code_;
  const std::atomic<uint32_t>* cluster_state_;
  uint32_t failed_from_;
  uint32_t sleeper_count_ = 0;
  std::array<Sleeper, kMostSleepers> sleepers_;
};

}  // namespace atolldb
