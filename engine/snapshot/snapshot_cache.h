// A node's cache of snapshot pages. The cache is local to the node's process: snapshot pages are
// immutable, so each node may have its own copies.
// Source: [FOEDUS15] section 5; rule R39.
//
// Look-up. A hash table maps the name of a page to a frame. A look-up takes no lock and writes only
// the frame's reference bit and hints (see below). A table entry may be missing or stale, so a
// reader compares the name stored in the frame. A miss takes a lock, but not during the read from
// the device.
//
// Read-ahead. In two cases a miss also reads the pages that follow the missing one, at little extra
// cost. In the first case some frames were never used, or the pool lends some, so nothing has to be
// evicted. A cache that has room for all pages is then warm after a sixteenth of the reads. In the
// second case the reader has read the preceding pages, as scans do. A miss sets no reference bit
// (CLOCK). The second access to a page sets its bit; for the page that caused the miss, the miss is
// the first access.
//
// Reads together. A reader that knows several pages that it will need can read those that are
// missing at the same time (`read_together`), wherever they are in the files. They count as read
// ahead. Scans of a Master-tree know the next pages from the page above them (ScanAhead).
//
// Warming. After a start, a thread reads the pages that the cache held before (`warm`), into frames
// that were never used, or are lent. These pages count as read ahead: the second access sets the
// reference bit.
//
// Reuse of frames. Evicted frames have a grace period of their own. Every reader has a slot with
// the *round* that it entered last; when it enters a round it holds no pointer to a frame. An
// eviction removes the entry from the table, then begins a new round. The frame is free when every
// slot is idle or has that round or a later one. Each call of `get` enters the current round, so it
// invalidates the pages that earlier calls of the same reader returned.
//
// A reader is in a round only within an engine call (R57). The call returns no address of a frame,
// so it leaves the round at its end. A reader that waits for a frame or for the device is in no
// round. So a worker that sleeps or computes within a transaction delays the reuse of no frame.
//
// Eviction. One eviction checks the reference bits of a bounded number of frames, under a lock of
// its own. Readers that find free frames do not wait for it.
//
// Lent frames. Besides its own frames the cache uses free pages of the node's volatile pool, as
// long as the pool has many (R81). A thread of the node returns them when the pool needs them
// (`return_lent`). So memory that volatile pages do not need holds snapshot pages. The frames of
// the pool have the numbers after those of the own frames, in the order of the pool's pages.
//
// Counts by storage. The cache counts the pages that it reads and evicts for each storage, under
// the lock that these steps take anyway. A look-up counts nothing.
//
// Addresses and hints. As long as the round stays the same, no page that was found in it moves. So
// a reader remembers the addresses of its latest pages and searches the table only for others. It
// uses an address only after it has compared the round (R39). Interior pages remember the frames of
// their children. The volatile half of a dual pointer is null in a snapshot. The cache stores the
// number of the child's frame there, as a null word (VolatilePointer::null_of). This is a hint: the
// reader checks the state bits of the frame and the name in it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/hooks/mutants.h"
#include "engine/snapshot/ghost_list.h"
#include "engine/snapshot/recent_reads.h"
#include "engine/snapshot/snapshot_files.h"
#include "engine/snapshot/storage_counts.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/base/status.h"
#include "shared/file/batch_reader.h"
#include "shared/file/io_buffer.h"
#include "shared/memory/histogram.h"
#include "shared/memory/page_header.h"
#include "shared/memory/page_pool.h"
#include "shared/memory/zeroed_array.h"
#include "shared/sync/run_gate.h"

namespace atolldb {

/// Limits of a reader's wait for a frame (R20, R24, R57). The words outlive the reader.
struct FrameWaitLimits {
  const std::atomic<uint32_t>* state = nullptr;  // ClusterState; null: never ends the wait
  const std::atomic<uint64_t>* epoch = nullptr;  // the cluster's epoch; null: no deadline
  // From this epoch on the wait ends with deadline_exceeded.
  uint64_t deadline_epoch = kMaxEpoch;
  /// After this time the wait ends with read_conflict. The transaction then ends its attempt, and
  /// holds nothing until the next attempt.
  std::chrono::nanoseconds patience = std::chrono::nanoseconds::max();
  Counter* waits = nullptr;  // counts the waits; may be null
  /// While the reader waits for a frame or for the device, another worker runs. Null: no gate.
  RunGate::Pass* pass = nullptr;
  /// Called with `waiter` before the reader waits for a frame or for the device. May be null.
  void (*before_wait)(void* waiter) = nullptr;
  void* waiter = nullptr;

  void announce_wait() const {
    if (before_wait != nullptr) before_wait(waiter);
  }
};

class SnapshotCache {
 public:
  /// Maximum number of frames that one pass of an eviction checks before it takes frames that were
  /// used lately. An eviction makes at most two passes.
  static constexpr uint32_t kMostSwept = 1024;

  /// Own frames and pages of the lender are fewer than this number. A hint has 31 bits for a frame:
  /// those of a null word without its mark (R76).
  static constexpr uint64_t kMaxFrames = uint64_t{1} << 31;

  /// Returns the smallest size of a cache in bytes. Each reader may hold one frame, so fewer frames
  /// cannot serve all readers.
  static uint64_t min_bytes(uint32_t reader_count) { return (reader_count + 2) * kPageBytes; }

  /// Returns the most bytes that the tables of a cache take: of its own frames and of those that a
  /// pool may lend.
  static uint64_t table_bytes(uint64_t own_frames, uint64_t lent_frames);

  /// Receives the error of each page that could not be read. Thread: any.
  using OnError = std::function<void(const Error&)>;

  /// `frames`: `bytes` bytes of memory (at least min_bytes), aligned to pages. `files` outlives the
  /// cache. `lender`: a pool that lends free pages, and outlives the cache; null: none.
  SnapshotCache(std::byte* frames, uint64_t bytes, uint32_t reader_count,
                const SnapshotFiles& files, OnError on_error, PagePool* lender = nullptr);
  SnapshotCache(const SnapshotCache&) = delete;
  SnapshotCache& operator=(const SnapshotCache&) = delete;

  struct Statistics {
    uint64_t frames = 0;  // own and lent frames
    uint64_t lent_frames = 0;
    uint64_t frames_in_use = 0;
    uint64_t misses = 0;  // read calls to the files
    uint64_t evictions = 0;
    uint64_t longest_sweep = 0;  // most frames that one eviction has checked
    uint64_t ghost_hits = 0;     // waits that a larger cache would have saved (GhostList)
  };
  Statistics statistics() const;
  /// Returns the counts of reads and evictions by storage.
  StorageCounts storage_counts() const;
  /// Returns the counts of storages that have changed since the last call. Copies no others,
  /// because readers that miss a page wait meanwhile.
  std::vector<StorageCount> take_changed_counts();

  /// Returns the pages that misses have read since the last call. Thread: any.
  ReadPages take_recent_reads();

  /// Returns the names of at most `most` cached pages: first those that were used lately. Takes the
  /// lock for a few frames at a time. Thread: any; it may allocate.
  std::vector<uint64_t> cached_pages(uint64_t most) const;

  /// Reads up to `count` pages from `first` on into frames that were never used, or are lent now,
  /// unless they are cached. Evicts nothing. Returns how many of them are cached now, or nothing if
  /// there are no such frames. Pages that cannot be read are omitted, and not reported.
  /// `buffer`: room for kPagesPerRead pages. Thread: any, even without a SnapshotReader. REQUIRES:
  /// no file is closed meanwhile.
  std::optional<uint32_t> warm(SnapshotPointer first, uint32_t count, std::byte* buffer);

  /// Copies a leaf page if the cache has it. Other pages hold hints, which readers change. Returns
  /// false if the cache lacks the page. Does not count as a use. Blocks readers that miss pages
  /// while it copies, but not if the cache lacks the page. Thread: any, even without a
  /// SnapshotReader (R39).
  bool copy_page(SnapshotPointer pointer, std::byte* into) const;

  /// Evicts up to `wanted` lent frames, at most kReturnAtOnce, and returns them to the pool. Blocks
  /// until no reader uses them. Returns their number. It is 0 if no frame is lent, or if readers
  /// fill all lent frames now. Thread: one at a time.
  uint32_t return_lent(uint64_t wanted);
  static constexpr uint32_t kReturnAtOnce = 256;

 private:
  friend class SnapshotReader;

  static constexpr uint64_t kIdle = ~uint64_t{0};
  static constexpr uint32_t kWays = 8;          // entries of a bucket: one cache line
  static constexpr uint32_t kEvictAtOnce = 16;  // frames per eviction; many, so that rounds are few
  static constexpr size_t kFramesPerRead = 4;   // see most_together
  /// A multiple of all numbers up to kPagesPerRead. A wait for n pages counts for each of them as
  /// kPartsOfWait / n.
  static constexpr uint64_t kPartsOfWait = 720'720;

  struct alignas(64) Bucket {
    /// Layout: [tag 32][frame + 1, 32]. An empty entry is 0.
    std::atomic<uint64_t> entries[kWays];
  };
  struct alignas(64) Slot {
    std::atomic<uint64_t> round{kIdle};
  };
  struct Frame {
    uint64_t pointer;     // name of the page that it holds
    uint64_t free_from;   // for an evicted frame: the round from which it is free
    uint64_t lent_name;   // for a lent frame: name of the pool's page
    uint32_t lent_at;     // for a lent frame: its index in lent_
    uint32_t storage_id;  // storage of the page that it holds
  };
  // State bits of a frame, in `state_bits_`.
  static constexpr uint8_t kListed = 1;      // holds a page that readers may find
  static constexpr uint8_t kReferenced = 2;  // reference bit (CLOCK): used lately
  static constexpr uint8_t kAhead = 4;       // read ahead and not accessed yet

  static uint64_t hash(uint64_t word) {
    word *= 0x9e3779b97f4a7c15ull;
    return word ^ (word >> 29);
  }
  Bucket& bucket_of(uint64_t hash) const { return buckets_[hash & bucket_mask_]; }
  static uint64_t entry_of(uint64_t hash, uint32_t frame) {
    DCHECK(frame != ~uint32_t{0});
    return (hash & 0xffffffff00000000ull) | (frame + 1);
  }
  PageHeader* page_at(uint32_t frame) const {
    const uintptr_t base = frame < own_count_ ? own_base_ : lent_base_;
    return reinterpret_cast<PageHeader*>(base + uint64_t{frame} * kPageBytes);
  }
  /// Number of frames that the cache has now. An estimate, unless a lock is held.
  uint32_t frame_count() const { return own_count_ + lent_count_.load(std::memory_order_relaxed); }
  /// Returns whether a page can be read without an eviction. An estimate. Only misses call it,
  /// because it may load a line of the own pool that workers write once per batch of pages.
  bool has_room() const {
    return never_used_.load(std::memory_order_relaxed) != own_count_ ||
           (lender_ != nullptr && lender_->can_lend());
  }
  const PageHeader* find(SnapshotPointer pointer, uint32_t& frame) const;
  const PageHeader* find_at(uint64_t frame, SnapshotPointer pointer) const;
  bool find_frame(SnapshotPointer pointer, uint32_t& frame) const;
  /// Records an access to the frame in its state bits and returns its page.
  const PageHeader* use(uint32_t frame) const;
  bool is_at(uint32_t frame, SnapshotPointer pointer) const;
  bool is_here(SnapshotPointer pointer) const {
    uint32_t frame = 0;
    return find_frame(pointer, frame);
  }
  /// Returns false if the cache lacks the page. Returns true if it has it, and in rare cases if it
  /// does not. Reads no frame, so the caller needs neither a round nor lock_.
  bool may_have(SnapshotPointer pointer) const {
    const uint64_t hash = SnapshotCache::hash(pointer.word());
    for (const std::atomic<uint64_t>& entry : bucket_of(hash).entries) {
      // Relaxed: a hint. The caller checks the page under lock_.
      const uint64_t word = entry.load(std::memory_order_relaxed);
      if ((word ^ hash) >> 32 == 0 && word != 0) return true;
    }
    return false;
  }
  bool is_referenced(uint32_t frame) const {
    DCHECK(frame < frame_end_);
    return (state_bits_[frame].load(std::memory_order_relaxed) & kReferenced) != 0;
  }
  /// Frames for adjacent pages of a file.
  struct Frames {
    std::array<uint32_t, kPagesPerRead> numbers;
    uint32_t count = 0;
  };
  uint32_t pages_to_read(SnapshotPointer first, bool is_scan) const;
  bool take_frames(uint32_t wanted, Frames& frames);
  bool take_free_frames(uint32_t wanted, Frames& frames, bool& lacks_evicted);
  bool take_unused_frames(uint32_t wanted, Frames& frames);
  uint32_t read(const Frames& frames, SnapshotPointer pointer, std::byte* buffer);
  Status list_read(const Frames& frames, SnapshotPointer pointer, uint32_t good,
                   const PageHeader*& page);
  uint32_t read_at_once(BatchReader& reader, const Frames& frames,
                        std::span<const SnapshotPointer> pages, std::byte* buffer) const;
  uint32_t list_together(const Frames& frames, std::span<const SnapshotPointer> pages,
                         uint32_t good);
  /// Returns how many missing pages one reader may read together. Small caches permit few, because
  /// no reader can use the frames meanwhile.
  uint32_t most_together() const {
    return static_cast<uint32_t>(
        std::min<size_t>(kPagesPerRead, frame_count() / (kFramesPerRead * slots_.size())));
  }
  bool take_room(uint32_t wanted, Frames& frames);
  void make_room();
  void await_round(uint64_t round);
  struct Victims {
    std::array<uint32_t, kReturnAtOnce> frames;
    uint32_t count = 0;
  };
  // REQUIRES for borrow, sweep and pick: sweep_lock_ is held.
  bool borrow();
  void sweep(Victims& victims, uint32_t wanted, uint32_t first_position, uint32_t& hand);
  void pick(uint32_t frame, Victims& victims);
  uint32_t frame_at(uint32_t position) const;  // REQUIRES: sweep_lock_ or lock_ is held
  // REQUIRES for the functions from here on: lock_ is held.
  uint64_t unlist_all(const Victims& victims, uint32_t first_victim);
  void take_evicted_lent(uint32_t most, Victims& victims);
  void remove_lent(uint32_t frame);  // REQUIRES: sweep_lock_ is held, too
  void give_back(uint32_t frame);
  void count_ghost(SnapshotPointer page, uint32_t pages_of_wait);
  void unlist(uint32_t frame);
  void list(uint32_t frame, SnapshotPointer pointer, uint8_t bits);
  uint64_t oldest_round() const;

  PagePool* const lender_;
  // Addresses of frame 0, by the numbers of own frames and of lent ones.
  const uintptr_t own_base_;
  const uintptr_t lent_base_;
  const uint32_t own_count_;
  const uint32_t frame_end_;  // the numbers of all frames are smaller
  const SnapshotFiles& files_;
  OnError on_error_;
  const uint64_t bucket_mask_;
  ZeroedArray<Bucket> buckets_;
  std::vector<Slot> slots_;
  std::atomic<uint64_t> round_{1};
  // State bits by frame. They lie close together because every look-up reads them.
  ZeroedArray<std::atomic<uint8_t>> state_bits_;
  ZeroedArray<Frame> frame_states_;

  FutexLock sweep_lock_;  // taken before lock_
  // CLOCK hands: positions (frame_at) of evictions and of returns. Guarded by sweep_lock_.
  uint32_t hand_ = 0;
  uint32_t return_hand_ = 0;
  mutable FutexLock lock_;
  // Frames that are lent, in no order. Changed under both locks.
  std::vector<uint32_t> lent_;
  std::atomic<uint32_t> lent_count_{0};  // size of lent_
  // Own frames with this number and higher ones were never taken. Written under lock_.
  std::atomic<uint32_t> never_used_{0};
  std::atomic<uint64_t> longest_sweep_{0};  // written under sweep_lock_
  // lock_ guards the members below.
  // `evicted_`: evicted frames, oldest first. The first `evicted_head_` of them were taken again.
  std::vector<uint32_t> evicted_;
  uint32_t evicted_head_ = 0;
  uint64_t misses_ = 0;
  uint64_t evictions_ = 0;
  uint64_t ghost_parts_ = 0;  // ghost hits, times kPartsOfWait
  GhostList ghosts_;
  StorageCounts storage_counts_;
  RecentReads recent_reads_;
};

/// One thread's access to the cache of its node.
class SnapshotReader {
 public:
  /// `slot`: smaller than the cache's reader count, used by no other reader. `state`: a
  /// ClusterState that ends waits (R24); may be null.
  SnapshotReader(SnapshotCache& cache, uint32_t slot, const std::atomic<uint32_t>* state = nullptr)
      : cache_(&cache), slot_(&cache.slots_[slot]) {
    CHECK(slot < cache.slots_.size());
    own_limits_.state = state;
  }
  SnapshotReader(const SnapshotReader&) = delete;
  SnapshotReader& operator=(const SnapshotReader&) = delete;
  /// Sets the limits of waits, in place of the constructor's `state`. `limits` outlives the
  /// reader's last call.
  void use_limits(const FrameWaitLimits& limits) { limits_ = &limits; }

  /// Returns a page. It is valid until the next call of any function of this reader, except
  /// `round`. With `round` the caller can find out that the page is still valid.
  /// Errors: snapshot_unreadable after SnapshotCache::OnError has received the reason;
  /// cluster_failed, deadline_exceeded and read_conflict as in FrameWaitLimits.
  Status get(SnapshotPointer pointer, const PageHeader*& page) {
    page = find(pointer);
    if (page == nullptr) [[unlikely]]
      return load(pointer, page);
    return Status::ok;
  }
  /// Returns a page with the validity of `get`, or null if the cache lacks it. Reads no file.
  const PageHeader* find(SnapshotPointer pointer) {
    quiesce();
    Known& known = known_at(pointer);
    if (known.pointer == pointer.word()) [[likely]]
      return known.page;
    uint32_t frame = 0;
    const PageHeader* page = cache_->find(pointer, frame);
    // Remembers the page only if its reference bit is set, because later accesses through `known_`
    // do not set the bit. The second access sets the bit of a page that was read ahead.
    if (page != nullptr && cache_->is_referenced(frame)) [[likely]]
      known = {pointer.word(), page};
    return page;
  }
  /// Returns a child page, with the validity and errors of `get`.
  /// REQUIRES: `link` lies in the page that this reader got last.
  Status get_child(DualPointer& link, const PageHeader*& page) {
    const SnapshotPointer pointer(link.snapshot_word.load(std::memory_order_relaxed));
    page = find_child(link, pointer);
    if (page == nullptr) [[unlikely]]
      return load(pointer, page);
    return Status::ok;
  }
  /// Returns a child page with the validity of `get`, or null if the cache lacks it. Reads no file.
  /// REQUIRES: `link` lies in the page that this reader got last; `pointer` is its snapshot word.
  const PageHeader* find_child(DualPointer& link, SnapshotPointer pointer) {
    DCHECK(link.snapshot_word.load(std::memory_order_relaxed) == pointer.word());
    // Acquire pairs with the release of the eviction that began the round. If the round is new, the
    // page that holds `link` may be evicted, so the hint is not used.
    if (cache_->round_.load(std::memory_order_acquire) != seen_) [[unlikely]]
      return find(pointer);
    const uint64_t hint = link.volatile_word.load(std::memory_order_relaxed) >> kHintShift;
    const PageHeader* page = hint == 0 ? nullptr : cache_->find_at(hint - 1, pointer);
    if (page == nullptr) [[unlikely]] {
      uint32_t frame = 0;
      page = cache_->find(pointer, frame);
      if (page == nullptr) return nullptr;
      link.volatile_word.store(VolatilePointer::null_of(frame + 1).word(),
                               std::memory_order_relaxed);
    }
    known_at(pointer) = {pointer.word(), page};
    return page;
  }
  /// Returns the probable address of a child, or null if it is unknown. Use it only to prefetch the
  /// child's cache lines.
  /// REQUIRES: as for `get_child`.
  const PageHeader* guess_child(const DualPointer& link) const {
    const uint64_t hint = link.volatile_word.load(std::memory_order_relaxed) >> kHintShift;
    return hint == 0 ? nullptr : cache_->page_at(static_cast<uint32_t>(hint) - 1);
  }
  /// Reads those of these pages together that are missing in the cache, at most kPagesPerRead. If
  /// fewer frames are free, reads the first pages of the list. A hint: does nothing for fewer than
  /// two missing pages, never waits for a frame, and does not report pages that cannot be read.
  /// Leaves the round, which ends the validity of all pages. Returns the number of pages that it
  /// has added to the cache.
  uint32_t read_together(std::span<const SnapshotPointer> pages);
  /// Returns whether a search for missing pages is likely to pay, before `read_together`. True for
  /// the first kSearchesPerMiss calls, and for as many after each miss of this reader. So searches
  /// of cached pages cost at most a small part of the time that misses take.
  bool expects_misses() {
    if (searches_ == 0) return false;
    --searches_;
    return true;
  }
  static constexpr uint32_t kSearchesPerMiss = 16;
  /// Returns the round of this reader. While it stays the same, all addresses that the reader
  /// returned in it are valid (R39).
  uint64_t round() const { return seen_; }
  /// Enters the current round unless the reader is already in it, and returns it. If two calls
  /// return the same round, no page has moved between them, even if the reader left the round
  /// meanwhile.
  uint64_t enter() {
    quiesce();
    return seen_;
  }
  /// Leaves the round. Call it at the end of an engine call that has read snapshot pages (R57).
  void leave_call() {
    if (!fault::keep_rounds) leave();
  }
  /// Leaves the round. From here on the reader holds no page. A thread calls this when a
  /// transaction begins, and before it blocks. As long as a thread is in a round, readers that wait
  /// for a frame may have to wait for this thread.
  void leave() {
    if (seen_ == SnapshotCache::kIdle) return;
    seen_ = SnapshotCache::kIdle;
    // Release: all reads of frames come before this store.
    slot_->round.store(SnapshotCache::kIdle, std::memory_order_release);
  }

 private:
  /// A page found in round `known_in_`. It does not move while that round lasts.
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
    // Acquire pairs with the release of the eviction that began the round: the table no longer
    // leads to the evicted frames.
    const uint64_t round = cache_->round_.load(std::memory_order_acquire);
    if (round != seen_) enter_round(round);
  }
  void enter_round(uint64_t round);
  Status load(SnapshotPointer pointer, const PageHeader*& page);
  Status await_frames(uint32_t wanted, SnapshotCache::Frames& frames);

  SnapshotCache* cache_;
  SnapshotCache::Slot* slot_;
  FrameWaitLimits own_limits_;  // used until use_limits is called
  const FrameWaitLimits* limits_ = &own_limits_;
  uint64_t seen_ = SnapshotCache::kIdle;
  uint64_t known_in_ = 0;
  std::array<Known, kKnown> known_{};
  uint64_t read_to_ = 0;                  // pointer word after the last page that `load` read
  uint32_t searches_ = kSearchesPerMiss;  // remaining calls for which expects_misses is true
  std::unique_ptr<BatchReader> batch_;    // for read_together; created when it is first needed
  // Buffer for reads of several pages, whose frames are not adjacent.
  IoBuffer buffer_{kPagesPerRead * kPageBytes};
};

}  // namespace atolldb
