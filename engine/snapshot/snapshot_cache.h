// A node's cache of snapshot pages: local to its process, since they are immutable and each node
// may have its own copy (foedus.txt section 5; rule R39).
//
// Look-ups take no lock and write nothing but a frame's mark and hints (below). A hash table leads
// from a page's name to a frame; an entry may be missing or out of date, so whoever follows one
// compares the name that is in the frame. A miss takes a lock, though not while it reads: it costs
// a read from the device anyway.
//
// It also reads the pages behind the one that is missing, which costs little more: as long as there
// are frames that were never used, since that pushes nothing out, and a cache that all fit into is
// warm after a sixteenth of the reads; and when the reader has come from the pages before, as scans
// do. Pages read ahead are "used lately" (CLOCK) from the second look on, as others are that are
// found for the first time by the look that has them read.
//
// Frames are used again after a grace of their own. Every reader has a slot with the *round* that
// it was quiescent in last: it then held no pointer to a frame. Evicting takes the entry out of the
// table, then begins a new round; the frame is free when every slot has that round or is idle.
// A call of `get` is such a point: it ends what earlier calls of the same reader gave.
//
// A reader is in a round only within an engine call (R57): the call leaves at its end, since it
// hands out no address of a frame. While a reader waits for a frame, or for the device, it is in no
// round either. So a worker that sleeps or computes in a transaction holds no frame back.
//
// Evicting sweeps the marks of a bounded number of frames, under a lock of its own: readers that
// find free frames do not wait for it.
//
// While the round stays the same nothing that was found in it is used again. So a reader remembers
// where its latest pages were, and asks the table only for others (R39: an address is used only
// after the look at the round). And interior pages learn where their children are: the volatile
// half of a dual pointer, null in a snapshot, is here the number of the child's frame, as a null
// word (VolatilePointer::null_of). It is a hint: the frame's own mark and the name in it decide.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/mutants.h"
#include "engine/snapshot/snapshot_files.h"
#include "shared/file/io_buffer.h"
#include "shared/limits.h"
#include "shared/memory/page_header.h"
#include "shared/metrics/counter.h"
#include "shared/status.h"
#include "shared/sync/futex_lock.h"

namespace atolldb {

/// What ends a reader's wait for a frame (R20, R24, R57). Its words outlive the reader.
struct FrameWaitLimits {
  const std::atomic<uint32_t>* state = nullptr;  // ClusterState; null: none
  const std::atomic<uint64_t>* epoch = nullptr;  // the cluster's; null: no deadline
  uint64_t deadline_epoch = kMaxEpoch;           // deadline_exceeded from that epoch on
  /// Then read_conflict, so that the transaction ends its attempt and holds nothing meanwhile.
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
  Counter* waits = nullptr;  // counts them
};

class SnapshotCache {
 public:
  /// Frames whose marks one eviction looks at before it takes frames that were used lately.
  static constexpr uint32_t kMostSwept = 1024;

  /// A cache with fewer frames cannot serve its readers: each may hold one.
  static uint64_t min_bytes(uint32_t reader_count) { return (reader_count + 2) * kPageBytes; }

  /// What went wrong with a page that could not be read; called by any thread.
  using OnError = std::function<void(const Error&)>;

  /// `frames`: `bytes` bytes (at least min_bytes), aligned to pages. `files` outlives the cache.
  SnapshotCache(std::byte* frames, uint64_t bytes, uint32_t reader_count,
                const SnapshotFiles& files, OnError on_error);
  SnapshotCache(const SnapshotCache&) = delete;
  SnapshotCache& operator=(const SnapshotCache&) = delete;

  struct Statistics {
    uint64_t frames = 0;
    uint64_t frames_in_use = 0;
    uint64_t misses = 0;  // reads of the files
    uint64_t evictions = 0;
    uint64_t longest_sweep = 0;  // frames whose marks one eviction has looked at
  };
  Statistics statistics() const;

 private:
  friend class SnapshotReader;

  static constexpr uint64_t kIdle = ~uint64_t{0};
  static constexpr uint32_t kWays = 8;          // entries of a bucket: one cache line
  static constexpr uint32_t kEvictAtOnce = 16;  // so that rounds are few

  struct alignas(64) Bucket {
    /// [tag 32][frame + 1, 32]; 0: none.
    std::atomic<uint64_t> entries[kWays];
  };
  struct alignas(64) Slot {
    std::atomic<uint64_t> round{kIdle};
  };
  struct Frame {
    uint64_t pointer = 0;    // whose page it holds
    uint64_t free_from = 0;  // an evicted one: the round
  };
  // Marks of a frame.
  static constexpr uint8_t kListed = 1;  // holds a page that may be found
  static constexpr uint8_t kUsed = 2;    // lately; CLOCK
  static constexpr uint8_t kAhead = 4;   // nobody has looked at it yet

  static uint64_t hash(uint64_t word) {
    word *= 0x9e3779b97f4a7c15ull;
    return word ^ (word >> 29);
  }
  Bucket& bucket_of(uint64_t hash) const { return buckets_[hash & bucket_mask_]; }
  static uint64_t entry_of(uint64_t hash, uint32_t frame) {
    return (hash & 0xffffffff00000000ull) | (frame + 1);
  }
  PageHeader* page_at(uint32_t frame) const {
    return reinterpret_cast<PageHeader*>(frames_ + uint64_t{frame} * kPageBytes);
  }
  const PageHeader* find(SnapshotPointer pointer, uint32_t& frame) const;
  const PageHeader* find_at(uint64_t frame, SnapshotPointer pointer) const;
  bool find_frame(SnapshotPointer pointer, uint32_t& frame) const;
  /// Marks the frame, and gives the page in it.
  const PageHeader* use(uint32_t frame) const;
  bool is_at(uint32_t frame, SnapshotPointer pointer) const;
  bool is_here(SnapshotPointer pointer) const {
    uint32_t frame = 0;
    return find_frame(pointer, frame);
  }
  bool is_used(uint32_t frame) const {
    return (marks_[frame].load(std::memory_order_relaxed) & kUsed) != 0;
  }
  /// Frames for pages that follow each other.
  struct Frames {
    std::array<uint32_t, kPagesPerRead> numbers;
    uint32_t count = 0;
  };
  uint32_t pages_to_read(SnapshotPointer first, bool is_scan) const;
  bool take_frames(uint32_t wanted, Frames& frames);
  bool take_free_frames(uint32_t wanted, Frames& frames, bool& lacks_evicted);
  uint32_t read(const Frames& frames, SnapshotPointer pointer, std::byte* buffer);
  Status list_read(const Frames& frames, SnapshotPointer pointer, uint32_t good,
                   const PageHeader*& page);
  void evict();
  // Under sweep_lock_.
  struct Victims {
    std::array<uint32_t, kEvictAtOnce> frames;
    uint32_t count = 0;
  };
  void sweep(Victims& victims);
  void pick(uint32_t frame, Victims& victims);
  uint32_t next_of_hand();
  // Under lock_.
  void unlist_all(const Victims& victims);
  void give_back(uint32_t frame);
  void unlist(uint32_t frame);
  void list(uint32_t frame, SnapshotPointer pointer, uint8_t mark);
  uint64_t oldest_round() const;

  std::byte* frames_;
  const uint32_t frame_count_;
  const SnapshotFiles& files_;
  OnError on_error_;
  std::unique_ptr<Bucket[]> buckets_;
  uint64_t bucket_mask_;
  std::vector<Slot> slots_;
  std::atomic<uint64_t> round_{1};
  // By frame. Close together: every look-up looks there.
  std::unique_ptr<std::atomic<uint8_t>[]> marks_;
  std::unique_ptr<Frame[]> frame_states_;

  FutexLock sweep_lock_;  // before lock_
  uint32_t hand_ = 0;     // of the CLOCK; guarded by sweep_lock_
  mutable FutexLock lock_;
  // Frames from here on were never taken. Written under lock_.
  std::atomic<uint32_t> never_used_{0};
  std::atomic<uint64_t> longest_sweep_{0};  // written under sweep_lock_
  // Guarded by lock_.
  std::vector<uint32_t> evicted_;  // in order; the first `evicted_head_` were taken again
  uint32_t evicted_head_ = 0;
  uint64_t misses_ = 0;
  uint64_t evictions_ = 0;
};

/// One thread's way into the cache of its node.
class SnapshotReader {
 public:
  /// `slot`: less than the cache's reader count, nobody else's. `state`: ClusterState, which ends
  /// waits (R24); null: none.
  SnapshotReader(SnapshotCache& cache, uint32_t slot, const std::atomic<uint32_t>* state = nullptr)
      : cache_(&cache), slot_(&cache.slots_[slot]) {
    own_limits_.state = state;
  }
  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;
  /// Instead of the state alone. `limits` outlives the reader's last call.
  void use_limits(const FrameWaitLimits& limits) { limits_ = &limits; }

  /// The page, good until the next call of any function of this reader but `round`, which may tell
  /// that it still is. snapshot_unreadable: the owner has been told why (SnapshotCache::OnError).
  /// cluster_failed, deadline_exceeded and read_conflict: see FrameWaitLimits.
  Status get(SnapshotPointer pointer, const PageHeader*& page) {
    quiesce();
    Known& known = known_at(pointer);
    if (known.pointer == pointer.word()) [[likely]] {
      page = known.page;
      return Status::ok;
    }
    uint32_t frame = 0;
    page = cache_->find(pointer, frame);
    if (page == nullptr) [[unlikely]]
      return load(pointer, page);
    // From the second look at a page that was read ahead on: who knows it does not mark it.
    if (cache_->is_used(frame)) [[likely]]
      known = {pointer.word(), page};
    return Status::ok;
  }
  /// The same of a child. `link` must lie in the page that this reader got last.
  Status get_child(DualPointer& link, const PageHeader*& page) {
    const SnapshotPointer pointer(link.snapshot_word.load(std::memory_order_relaxed));
    // As in quiesce. In a new round the page with the link is let go: no hint is read or left.
    if (cache_->round_.load(std::memory_order_acquire) != seen_) [[unlikely]]
      return get(pointer, page);
    const uint64_t hint = link.volatile_word.load(std::memory_order_relaxed) >> kHintShift;
    page = hint == 0 ? nullptr : cache_->find_at(hint - 1, pointer);
    if (page == nullptr) [[unlikely]] {
      uint32_t frame = 0;
      page = cache_->find(pointer, frame);
      if (page == nullptr) return load(pointer, page);
      link.volatile_word.store(VolatilePointer::null_of(frame + 1).word(),
                               std::memory_order_relaxed);
    }
    known_at(pointer) = {pointer.word(), page};
    return Status::ok;
  }
  /// Where the child probably is: for loading its lines ahead, and nothing else. Null: not known.
  /// `link` as above.
  const PageHeader* guess_child(const DualPointer& link) const {
    const uint64_t hint = link.volatile_word.load(std::memory_order_relaxed) >> kHintShift;
    return hint == 0 ? nullptr : cache_->page_at(static_cast<uint32_t>(hint) - 1);
  }
  /// As long as this stays the same, all addresses that it gave meanwhile are good (R39).
  uint64_t round() const { return seen_; }
  /// Enters the current round, if the reader is in none or in an older one; answers it. Pages of
  /// the same round are where they were, even if the reader has left meanwhile.
  uint64_t enter() {
    quiesce();
    return seen_;
  }
  /// At the end of an engine call that has read pages of snapshots (R57).
  void leave_call() {
    if (!mutant(Mutant::keep_rounds)) leave();
  }
  /// Holds no page from here on: at the begin of a transaction, and before blocking. So whoever
  /// waits for a frame does not wait for a transaction that reads no snapshot.
  void leave() {
    if (seen_ == SnapshotCache::kIdle) return;
    seen_ = SnapshotCache::kIdle;
    // Release: all reads of frames stay before it.
    slot_->round.store(SnapshotCache::kIdle, std::memory_order_release);
  }

 private:
  /// Pages found while the round was `known_in_`: as long as it is, they stay where they are.
  struct Known {
    uint64_t pointer = 0;
    const PageHeader* page = nullptr;
  };
  static constexpr uint32_t kKnown = 32;
  Known& known_at(SnapshotPointer pointer) {
    return known_[SnapshotCache::hash(pointer.word()) % kKnown];
  }
  static constexpr uint32_t kHintShift = 32;
  static_assert(VolatilePointer::null_of(1).word() == uint64_t{1} << kHintShift);

  void quiesce() {
    // Acquire pairs with the release of the eviction that began the round: what it took out of the
    // table is not found any more.
    const uint64_t round = cache_->round_.load(std::memory_order_acquire);
    if (round != seen_) enter_round(round);
  }
  void enter_round(uint64_t round);
  Status load(SnapshotPointer pointer, const PageHeader*& page);
  Status await_frames(uint32_t wanted, SnapshotCache::Frames& frames);

  SnapshotCache* cache_;
  SnapshotCache::Slot* slot_;
  FrameWaitLimits own_limits_;  // of a reader without a worker
  const FrameWaitLimits* limits_ = &own_limits_;
  uint64_t seen_ = SnapshotCache::kIdle;
  uint64_t known_in_ = 0;
  std::array<Known, kKnown> known_{};
  uint64_t read_to_ = 0;                         // the word behind the pages that it had read last
  IoBuffer buffer_{kPagesPerRead * kPageBytes};  // for several pages, whose frames are anywhere
};

}  // namespace atolldb
