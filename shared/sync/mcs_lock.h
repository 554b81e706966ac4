// MCS queue lock over shared memory. Source: [MCS91]. Rules R21 to R25.
//
// A lock word names the last waiter (worker, block). Each waiter spins, then sleeps, on a block in
// its own node's `shared` segment, so waiting costs no remote traffic. Invariants:
// - A block is used for one lock at a time. It names that lock from before the word changes until
//   after the release (R22). So another thread could complete the operation of a dead worker.
// - Threads that wait without limit do so in universal order. All others only try.
// - The last blocks of each worker are for early locks. No thread waits with such a block, because
//   an early lock is only tried (R106).
// - Every wait checks the cluster state, and can end with `cluster_failed`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/pointer.h"
#include "shared/base/status.h"

namespace atolldb {

/// The lock word of records and pages: tail of the queue of waiters, worker id 16 | block index 16.
/// 0: unlocked (block indexes start at 1, R25). Changed by compare-and-swap and exchange, by many
/// writers.
struct McsWord {
  std::atomic<uint32_t> tail{0};

  bool is_locked() const { return tail.load(std::memory_order_seq_cst) != 0; }
};
static_assert(sizeof(McsWord) == 4);

/// Worker id: node << 8 | ordinal.
using WorkerId = uint16_t;

/// One queue element. Writers: its worker, its successor in the queue (`successor`), and the thread
/// that hands the lock over (`state`).
struct McsBlock {
  static constexpr uint32_t kWaiting = 0;
  static constexpr uint32_t kGranted = 1;
  static constexpr uint32_t kSleeping = 2;

  std::atomic<uint32_t> state;
  std::atomic<uint32_t> successor;  // worker 16 | block 16; 0: no successor yet
  std::atomic<uint64_t> lock_name;  // UniversalName of the lock waited for or held; 0: no lock
};
static_assert(sizeof(McsBlock) == 16);

/// Addresses of every node's lock blocks in this process.
class LockSpace {
 public:
  /// `early_blocks`: number of blocks of each worker for early locks, the last ones.
  void set_node(uint32_t node, McsBlock* blocks, uint32_t blocks_per_worker,
                uint32_t early_blocks) {
    CHECK(node <= kMaxNodes && blocks != nullptr);
    CHECK(blocks_per_worker > 1 && blocks_per_worker <= kMaxBlocks);
    // A node that runs no transactions may have fewer blocks.
    const uint32_t early = blocks_per_worker > early_blocks ? early_blocks : 0;
    nodes_[node] = {blocks, blocks_per_worker, blocks_per_worker - early};
  }
  McsBlock& block(uint32_t tail) const {
    const uint32_t worker = tail >> 16;
    const Node& node = nodes_[worker >> 8];
    // The check is valid for a tail that another process wrote, too: the segments of all processes
    // have the same layout.
    DCHECK(node.blocks != nullptr && (tail & 0xffff) < node.blocks_per_worker);
    return node.blocks[uint64_t{worker & 0xff} * node.blocks_per_worker + (tail & 0xffff)];
  }
  /// Returns true if the word is that of an early lock. REQUIRES: `tail` is not 0.
  bool is_early(uint32_t tail) const {
    const Node& node = nodes_[tail >> 24];
    DCHECK(tail != 0 && node.blocks != nullptr);
    return (tail & 0xffff) >= node.first_early;
  }
  /// Returns the index of a worker's first block for early locks. REQUIRES: the node is set.
  uint32_t first_early(uint32_t node) const { return nodes_[node].first_early; }

 private:
  /// Block indexes have 16 bits.
  static constexpr uint32_t kMaxBlocks = 1u << 16;

  struct Node {
    McsBlock* blocks = nullptr;
    uint32_t blocks_per_worker = 0;
    uint32_t first_early = 0;
  };
  std::array<Node, kMaxNodes + 1> nodes_{};
};

/// Lock operations of one thread. Not shared between threads.
class McsLocker {
 public:
  /// REQUIRES: `space` has the blocks of this node. `cluster_state` is the word that every wait
  /// checks; values of `failed_from` or more end waits with cluster_failed.
  McsLocker(const LockSpace& space, WorkerId self, const std::atomic<uint32_t>& cluster_state,
            uint32_t failed_from)
      : space_(&space),
        blocks_(&space.block(uint32_t{self} << 16)),
        self_(self),
        cluster_state_(&cluster_state),
        failed_from_(failed_from) {}

  /// Waits for the lock. Returns ok, or cluster_failed (then not locked). REQUIRES: block
  /// `block_index` (1 ... capacity-1) is not in use, and the caller holds no lock, or only locks
  /// before `name` in universal order.
  Status lock(McsWord& word, uint32_t block_index, UniversalName name) {
    McsBlock& block = own_block(block_index);
    block.lock_name.store(name.word(), std::memory_order_relaxed);
    if (try_acquire(word, block, block_index)) return Status::ok;
    return lock_contended(word, block, block_index);
  }

  bool try_lock(McsWord& word, uint32_t block_index, UniversalName name) {
    McsBlock& block = own_block(block_index);
    block.lock_name.store(name.word(), std::memory_order_relaxed);
    if (try_acquire(word, block, block_index)) return true;
    block.lock_name.store(0, std::memory_order_relaxed);
    return false;
  }

  /// From now on block `to` holds the lock instead of block `from`. REQUIRES: the caller holds the
  /// lock with `from`, and `to` is not in use.
  void change_block(McsWord& word, uint32_t from, uint32_t to);

  void unlock(McsWord& word, uint32_t block_index) {
    McsBlock& block = own_block(block_index);
    uint32_t expected = tail_of(block_index);
    // Acquire pairs with the release with which the successor stores its name. seq_cst (R21) pairs
    // with the thread that loads or takes the word next: writes under the lock are visible.
    if (block.successor.load(std::memory_order_acquire) != 0 ||
        !word.tail.compare_exchange_strong(expected, 0, std::memory_order_seq_cst,
                                           std::memory_order_relaxed)) {
      hand_over(block);
    }
    block.lock_name.store(0, std::memory_order_relaxed);
  }

  WorkerId self() const { return self_; }

 private:
  McsBlock& own_block(uint32_t index) {
    DCHECK(&space_->block(tail_of(index)) == &blocks_[index]);
    return blocks_[index];
  }
  bool has_failed() const {
    return cluster_state_->load(std::memory_order_acquire) >= failed_from_;
  }
  uint32_t tail_of(uint32_t block_index) const { return (uint32_t{self_} << 16) | block_index; }

  bool try_acquire(McsWord& word, McsBlock& block, uint32_t block_index) {
    uint32_t expected = 0;
    if (word.tail.load(std::memory_order_relaxed) != 0) return false;
    block.successor.store(0, std::memory_order_relaxed);
    // seq_cst (R21) pairs with the load in CommitProtocol::probe, which verifies reads.
    return word.tail.compare_exchange_strong(expected, tail_of(block_index),
                                             std::memory_order_seq_cst, std::memory_order_relaxed);
  }

  Status lock_contended(McsWord& word, McsBlock& block, uint32_t block_index);
  uint32_t await_successor(McsBlock& block);
  void hand_over(McsBlock& block);

  const LockSpace* space_;
  McsBlock* blocks_;  // blocks of this worker
  WorkerId self_;
  const std::atomic<uint32_t>* cluster_state_;
  uint32_t failed_from_;
};

}  // namespace atolldb
