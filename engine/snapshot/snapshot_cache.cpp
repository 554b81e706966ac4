#include "engine/snapshot/snapshot_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <mutex>

#include "engine/format/stand_in.h"
#include "engine/hooks/mutants.h"
#include "engine/hooks/sync_points.h"
#include "shared/base/check.h"
#include "shared/memory/control_layout.h"

namespace atolldb {
namespace {

/// Copies a page of a snapshot into a frame. The frame may be a lent page, and a thread with an old
/// hint to that page may load its version and its name meanwhile (R86). The name is stored last:
/// a thread that takes it for the name in its hint sees that the page is one of a snapshot.
void store_in_frame(PageHeader* frame, const std::byte* from) {
  const auto* const page = reinterpret_cast<const PageHeader*>(from);
  constexpr size_t kRest = offsetof(PageHeader, max_removed_vid);
  std::memcpy(reinterpret_cast<std::byte*>(frame) + kRest, from + kRest, kPageBytes - kRest);
  frame->version_word.store(page->version_word.load(std::memory_order_relaxed),
                            std::memory_order_relaxed);
  std::atomic_ref(frame->self).store(page->self, std::memory_order_release);
}

/// Returns the number of pages from number `first` on that are adjacent in their file.
uint32_t run_from(std::span<const SnapshotPointer> pages, uint32_t first) {
  DCHECK(first < pages.size());
  uint32_t count = 1;
  while (first + count < pages.size() &&
         pages[first + count].word() == pages[first].word() + count) {
    ++count;
  }
  return count;
}

/// Returns the number of buckets: twice as many entries as frames, so that buckets are seldom full.
uint64_t bucket_count(uint64_t frames, uint32_t ways) {
  return std::bit_ceil(std::max<uint64_t>(1, 2 * frames / ways));
}

}  // namespace

uint64_t SnapshotCache::table_bytes(uint64_t own_frames, uint64_t lent_frames) {
  const uint64_t frames = own_frames + lent_frames;
  DCHECK(frames < kMaxFrames);
  constexpr uint64_t kOfFrame = sizeof(Frame) + sizeof(state_bits_[0]) + sizeof(evicted_[0]);
  return frames * kOfFrame + lent_frames * sizeof(lent_[0]) +
         bucket_count(frames, kWays) * sizeof(Bucket);
}

SnapshotCache::SnapshotCache(std::byte* frames, uint64_t bytes, uint32_t reader_count,
                             const SnapshotFiles& files, OnError on_error, PagePool* lender)
    : lender_(lender),
      own_base_(reinterpret_cast<uintptr_t>(frames)),
      lent_base_(lender == nullptr ? 0 : lender->base() - bytes / kPageBytes * kPageBytes),
      own_count_(static_cast<uint32_t>(bytes / kPageBytes)),
      frame_end_(static_cast<uint32_t>(own_count_ + (lender == nullptr ? 0 : lender->index_end()))),
      files_(files),
      on_error_(std::move(on_error)),
      bucket_mask_(bucket_count(frame_end_, kWays) - 1),
      buckets_(bucket_mask_ + 1),
      slots_(reader_count),
      state_bits_(frame_end_),
      frame_states_(frame_end_),
      ghosts_(frame_end_) {
  CHECK(bytes >= min_bytes(reader_count) && bytes / kPageBytes < kMaxFrames);
  CHECK(lender == nullptr || bytes / kPageBytes + lender->index_end() < kMaxFrames);
  CHECK(own_base_ % kPageBytes == 0 && std::has_single_bit(bucket_mask_ + 1));
  evicted_.reserve(frame_end_);
  lent_.reserve(frame_end_ - own_count_);
}

SnapshotCache::Statistics SnapshotCache::statistics() const {
  const std::lock_guard guard(lock_);
  const uint32_t taken = never_used_.load(std::memory_order_relaxed);
  CHECK(taken <= own_count_ && evicted_head_ <= evicted_.size());
  Statistics statistics;
  statistics.frames = own_count_ + lent_.size();
  statistics.lent_frames = lent_.size();
  statistics.frames_in_use = taken + lent_.size() - (evicted_.size() - evicted_head_);
  statistics.misses = misses_;
  statistics.evictions = evictions_;
  statistics.ghost_hits = ghost_parts_ / kPartsOfWait;
  statistics.longest_sweep = longest_sweep_.load(std::memory_order_relaxed);
  return statistics;
}

ReadPages SnapshotCache::take_recent_reads() {
  const std::lock_guard guard(lock_);
  return recent_reads_.take();
}

std::vector<StorageCount> SnapshotCache::take_changed_counts() {
  const std::lock_guard guard(lock_);
  return storage_counts_.take_changed();
}

StorageCounts SnapshotCache::storage_counts() const {
  const std::lock_guard guard(lock_);
  return storage_counts_;
}

const PageHeader* SnapshotCache::find(SnapshotPointer pointer, uint32_t& frame) const {
  return find_frame(pointer, frame) ? use(frame) : nullptr;
}

/// Finds the frame of a page. Does not set the frame's reference bit.
bool SnapshotCache::find_frame(SnapshotPointer pointer, uint32_t& frame) const {
  const uint64_t hash = SnapshotCache::hash(pointer.word());
  const Bucket& bucket = bucket_of(hash);
  for (const std::atomic<uint64_t>& entry : bucket.entries) {
    // seq_cst (no cost on x86): this load may not move before the store of this reader's slot.
    // Pairs with the eviction's store, and with the release in `list`: the page is complete.
    const uint64_t word = entry.load(std::memory_order_seq_cst);
    if ((word ^ hash) >> 32 != 0 || word == 0) continue;
    frame = static_cast<uint32_t>(word & 0xffffffff) - 1;
    if (is_at(frame, pointer)) return true;
  }
  return false;
}

bool SnapshotCache::is_at(uint32_t frame, SnapshotPointer pointer) const {
  // seq_cst: a reader with a hint loads this word instead of a table entry. Like that load, this
  // one may not move before the store of the reader's slot.
  DCHECK(frame < frame_end_);
  const bool is_listed = (state_bits_[frame].load(std::memory_order_seq_cst) & kListed) != 0;
  return (is_listed && page_at(frame)->self == pointer.word()) || fault::trust_hints;
}

/// Returns the page if it is in this frame, or null.
const PageHeader* SnapshotCache::find_at(uint64_t number, SnapshotPointer pointer) const {
  if (number >= frame_end_) return nullptr;
  const auto frame = static_cast<uint32_t>(number);
  return is_at(frame, pointer) ? use(frame) : nullptr;
}

const PageHeader* SnapshotCache::use(uint32_t frame) const {
  std::atomic<uint8_t>& state = state_bits_[frame];
  const uint8_t bits = state.load(std::memory_order_relaxed);
  // Sets the reference bit by fetch_or, because a store could overwrite the bits of a frame that is
  // being evicted.
  if ((bits & kReferenced) == 0) [[unlikely]] {
    if ((bits & kAhead) != 0) {
      state.fetch_and(static_cast<uint8_t>(~kAhead), std::memory_order_relaxed);
    } else {
      state.fetch_or(kReferenced, std::memory_order_relaxed);
    }
  }
  return page_at(frame);
}

std::vector<uint64_t> SnapshotCache::cached_pages(uint64_t most) const {
  constexpr uint32_t kAtOnce = 1024;
  std::vector<uint64_t> used;
  std::vector<uint64_t> others;
  for (uint32_t first = 0; first < frame_count() && used.size() < most; first += kAtOnce) {
    const std::lock_guard guard(lock_);
    const uint32_t end = std::min(first + kAtOnce, frame_count());
    for (uint32_t position = first; position < end; ++position) {
      const uint32_t frame = frame_at(position);
      const uint8_t bits = state_bits_[frame].load(std::memory_order_relaxed);
      if ((bits & kListed) == 0) continue;
      std::vector<uint64_t>& names = (bits & kReferenced) != 0 ? used : others;
      if (names.size() < most) names.push_back(frame_states_[frame].pointer);
    }
  }
  used.insert(used.end(), others.begin(), others.end());
  if (used.size() > most) used.resize(most);
  return used;
}

std::optional<uint32_t> SnapshotCache::warm(SnapshotPointer first, uint32_t count,
                                            std::byte* buffer) {
  DCHECK(buffer != nullptr);
  if (!has_room()) return std::nullopt;
  uint32_t cached = 0;
  {
    const std::lock_guard guard(lock_);
    while (count != 0 && is_here(first)) {
      first = SnapshotPointer(first.word() + 1);
      --count;
      ++cached;
    }
  }
  const uint64_t in_file = count == 0 ? 0 : files_.pages_from(first);  // 0: the file is not open
  const auto wanted = static_cast<uint32_t>(std::min<uint64_t>({count, in_file, kPagesPerRead}));
  if (wanted == 0) return cached;
  Frames frames;
  if (!take_room(wanted, frames)) return std::nullopt;
  DCHECK(first.page() + frames.count <= first.page() + in_file);
  const uint32_t good = files_.read_ahead(first, frames.count, buffer).value_or(0);
  DCHECK(good <= frames.count);
  for (uint32_t i = 0; i < good; ++i) {
    store_in_frame(page_at(frames.numbers[i]), buffer + i * kPageBytes);
  }
  const std::lock_guard guard(lock_);
  DCHECK(frames.count != 0 && frames.count <= wanted);
  for (uint32_t i = 0; i < frames.count; ++i) {
    const auto name = SnapshotPointer(first.word() + i);
    const bool is_cached = is_here(name);
    if (i < good && !is_cached) {
      list(frames.numbers[i], name, kAhead);
    } else {
      give_back(frames.numbers[i]);  // not read, or read by a reader meanwhile
    }
    if (i < good || is_cached) ++cached;
  }
  return cached;
}

bool SnapshotCache::copy_page(SnapshotPointer pointer, std::byte* into) const {
  CHECK(!pointer.is_null() && into != nullptr);
  if (!may_have(pointer)) return false;
  // A frame stays listed while this thread holds the lock, and a listed frame does not change. A
  // copy outside of the lock would need a round, and the threads of snapshot jobs have no slot for
  // one. Readers that miss pages wait for this copy of 64 cache lines, and longer if the thread
  // loses its processor meanwhile. In return the device, for which they wait much longer, reads a
  // page less.
  std::unique_lock guard(lock_);
  uint32_t frame = 0;
  if (!find_frame(pointer, frame)) return false;
  if (fault::copy_without_lock) guard.unlock();
  reach(SyncPoint::copying_frame);
  const PageHeader* const page = page_at(frame);
  // Readers store hints in pages of other levels (get_child) without the lock.
  if (page->level != 0) return false;
  std::memcpy(into, reinterpret_cast<const std::byte*>(page), kPageBytes);
  return true;
}

void SnapshotReader::enter_round(uint64_t round) {
  for (;;) {
    // seq_cst pairs with oldest_round: the slot is stored before any table entry is loaded, and
    // before the round is loaded again. If the round is still the same, the eviction that begins
    // the next round sees this slot. So no page that was found in this round is reused, even if the
    // reader was idle meanwhile.
    slot_->round.store(round, std::memory_order_seq_cst);
    const uint64_t now = cache_->round_.load(std::memory_order_seq_cst);
    if (now == round) break;
    round = now;
  }
  seen_ = round;
  DCHECK(round >= known_in_);
  if (round != known_in_ && !fault::keep_known_frames) known_.fill({});
  known_in_ = round;
}

Status SnapshotReader::load(SnapshotPointer pointer, const PageHeader*& page) {
  searches_ = kSearchesPerMiss;
  const bool is_scan = pointer.word() - read_to_ < kPagesPerRead;
  const uint32_t wanted = cache_->pages_to_read(pointer, is_scan);
  SnapshotCache::Frames frames;
  // Leaves the round, so the pages that this reader got earlier become invalid. While this reader
  // waits, it then delays no other reader, even if the device hangs (R57). Frames that this call
  // evicts become free only after this reader has left its round.
  if (!fault::read_within_round) leave();
  limits_->announce_wait();
  if (!cache_->take_frames(wanted, frames)) {
    const Status status = await_frames(wanted, frames);
    if (status != Status::ok) return status;
  }
  DCHECK(frames.count != 0 && frames.count <= wanted);
  read_to_ = pointer.word() + frames.count;
  const uint32_t good = [&] {
    const RunGate::DeviceWait wait(limits_->pass);
    return cache_->read(frames, pointer, buffer_.bytes().data());
  }();
  // Enters a round before the page is listed. An eviction of the page then begins a later round, so
  // the frame is not reused while this reader is in its round.
  quiesce();
  DCHECK(seen_ != SnapshotCache::kIdle);
  return cache_->list_read(frames, pointer, good, page);
}

uint32_t SnapshotReader::read_together(std::span<const SnapshotPointer> pages) {
  quiesce();  // within a round, a look-up reads no frame that is reused
  const uint32_t most = cache_->most_together();
  std::array<SnapshotPointer, kPagesPerRead> missing;
  uint32_t count = 0;
  for (const SnapshotPointer page : pages) {
    DCHECK(!page.is_null());
    const auto end = missing.begin() + count;
    const bool is_known = is_stand_in(page) || std::find(missing.begin(), end, page) != end;
    if (count < most && !is_known && !cache_->is_here(page)) missing[count++] = page;
  }
  leave();  // also if all pages are cached: this reader may be idle afterwards (R57)
  if (count != 0) searches_ = kSearchesPerMiss;
  if (count < 2) return 0;
  SnapshotCache::Frames frames;
  if (!cache_->take_frames(count, frames)) return 0;
  // Allocates, and sets up a queue in the kernel, once for each reader that uses cold pages.
  if (batch_ == nullptr) batch_ = BatchReader::create(kPagesPerRead);
  limits_->announce_wait();
  const auto wanted = std::span<const SnapshotPointer>(missing).first(frames.count);
  const uint32_t good = [&] {
    const RunGate::DeviceWait wait(limits_->pass);
    return cache_->read_at_once(*batch_, frames, wanted, buffer_.bytes().data());
  }();
  return cache_->list_together(frames, wanted, good);
}

Status SnapshotReader::await_frames(uint32_t wanted, SnapshotCache::Frames& frames) {
  // Spins first, because other readers are within engine calls, most of which end within
  // microseconds.
  constexpr uint32_t kSpinTurns = 64;
  constexpr uint32_t kSpins = 64;
  constexpr std::chrono::microseconds kPause{100};
  using Clock = std::chrono::steady_clock;
  const std::atomic<uint32_t> nothing{0};  // no thread wakes this one, because the pause is short
  DCHECK(seen_ == SnapshotCache::kIdle || fault::read_within_round);
  if (limits_->waits != nullptr) limits_->waits->add();
  const auto begin = Clock::now();
  for (uint32_t turn = 0;; ++turn) {
    // Acquire pairs with the release of the thread that ended the cluster.
    if (limits_->state != nullptr && !fault::waits_ignore_failure &&
        limits_->state->load(std::memory_order_acquire) >= kClusterFailedFrom) {
      return Status::cluster_failed;
    }
    if (limits_->epoch != nullptr && !fault::ignore_deadline &&
        limits_->epoch->load(std::memory_order_relaxed) >= limits_->deadline_epoch) {
      return Status::deadline_exceeded;
    }
    if (Clock::now() - begin >= limits_->patience) return Status::read_conflict;
    if (fault::read_within_round) quiesce();
    if (cache_->take_frames(wanted, frames)) return Status::ok;
    if (turn < kSpinTurns) {
      for (uint32_t spin = 0; spin < kSpins; ++spin) spin_pause();
      sched_yield();
    } else {
      const RunGate::DeviceWait wait(limits_->pass);
      wait_on(nothing, 0, kPause);
    }
  }
}

/// Returns how many pages to read: the wanted page and, if read-ahead is worthwhile, the pages
/// after it. The read ends before the first page that is cached.
uint32_t SnapshotCache::pages_to_read(SnapshotPointer first, bool is_scan) const {
  if (!is_scan && !has_room()) return 1;
  const auto most =
      static_cast<uint32_t>(std::min<uint64_t>(kPagesPerRead, files_.pages_from(first)));
  for (uint32_t count = 1; count < most; ++count) {
    if (is_here(SnapshotPointer(first.word() + count))) return count;
  }
  return std::max(1u, most);
}

/// Takes up to `wanted` frames. Returns false if readers may still use every evicted frame.
bool SnapshotCache::take_frames(uint32_t wanted, Frames& frames) {
  bool lacks_evicted = false;
  if (take_free_frames(wanted, frames, lacks_evicted)) return true;
  if (!lacks_evicted) return false;
  make_room();
  return take_free_frames(wanted, frames, lacks_evicted);
}

/// Takes up to `wanted` frames that were never used, or are lent now. Returns false if there are
/// none.
bool SnapshotCache::take_room(uint32_t wanted, Frames& frames) {
  {
    const std::lock_guard guard(lock_);
    if (take_unused_frames(wanted, frames)) return true;
  }
  // Readers may take the borrowed frames first.
  for (;;) {
    {
      const std::lock_guard sweeping(sweep_lock_);
      if (!borrow()) return false;
    }
    bool lacks_evicted = false;
    if (take_free_frames(wanted, frames, lacks_evicted)) return true;
  }
}

/// Takes up to `wanted` free frames. If there is none, returns false, and sets `lacks_evicted` if
/// the reason is that all evicted frames were taken.
bool SnapshotCache::take_free_frames(uint32_t wanted, Frames& frames, bool& lacks_evicted) {
  DCHECK(wanted != 0 && wanted <= kPagesPerRead);
  const std::lock_guard guard(lock_);
  if (take_unused_frames(wanted, frames)) return true;
  DCHECK(evicted_head_ <= evicted_.size());
  lacks_evicted = evicted_head_ == evicted_.size();
  if (lacks_evicted) return false;
  const uint64_t oldest = oldest_round();
  while (frames.count < wanted && evicted_head_ < evicted_.size()) {
    const uint32_t frame = evicted_[evicted_head_];
    const bool is_free = frame_states_[frame].free_from <= oldest;
    if (!is_free && !fault::reuse_frames_at_once) break;
    ++evicted_head_;
    DCHECK((state_bits_[frame].load(std::memory_order_relaxed) & kListed) == 0);
    frames.numbers[frames.count++] = frame;
  }
  return frames.count != 0;
}

/// Takes up to `wanted` frames that were never used. Returns false if there are none.
bool SnapshotCache::take_unused_frames(uint32_t wanted, Frames& frames) {
  frames.count = 0;
  uint32_t fresh = never_used_.load(std::memory_order_relaxed);
  while (frames.count < wanted && fresh < own_count_) {
    DCHECK((state_bits_[fresh].load(std::memory_order_relaxed) & kListed) == 0);
    frames.numbers[frames.count++] = fresh++;
  }
  never_used_.store(fresh, std::memory_order_relaxed);
  DCHECK(fresh <= own_count_);
  return frames.count != 0;
}

/// Reads pages into the frames. Returns the number of good pages. If it is 0, the first page could
/// not be read, and on_error_ was called. `buffer` has room for all pages. Runs without the lock,
/// so two readers that miss the same page read it twice. Readers may find both copies, which are
/// evicted when no longer used. A second copy of a page that was read ahead is dropped at once.
uint32_t SnapshotCache::read(const Frames& frames, SnapshotPointer pointer, std::byte* buffer) {
  reach(SyncPoint::reading_frames);
  const auto read = files_.read_ahead(pointer, frames.count, buffer);
  if (!read) on_error_(read.error());
  const uint32_t good = read.value_or(0);
  DCHECK(good <= frames.count);
  for (uint32_t i = 0; i < good; ++i) {
    store_in_frame(page_at(frames.numbers[i]), buffer + i * kPageBytes);
  }
  return good;
}

/// Enters the pages that were read into the cache's buckets, where readers find them. Gives back
/// the frames of pages that were not read, or that another reader has cached meanwhile. Sets `page`
/// to the first page. Returns snapshot_unreadable if that page could not be read.
/// REQUIRES: the reader is in a round.
Status SnapshotCache::list_read(const Frames& frames, SnapshotPointer pointer, uint32_t good,
                                const PageHeader*& page) {
  DCHECK(frames.count != 0 && good <= frames.count);
  const std::lock_guard guard(lock_);
  ++misses_;
  for (uint32_t i = 0; i < frames.count; ++i) {
    const auto name = SnapshotPointer(pointer.word() + i);
    const uint32_t frame = frames.numbers[i];
    if (i == 0 && good != 0) {
      list(frame, name, 0);
    } else if (i < good && !is_here(name)) {
      list(frame, name, kAhead);
    } else {
      give_back(frame);  // not read, or cached by another reader meanwhile
    }
  }
  if (good == 0) return Status::snapshot_unreadable;
  count_ghost(pointer, 1);
  page = page_at(frames.numbers[0]);
  recent_reads_.add(*page);
  return Status::ok;
}

/// Reads each page into its frame, all at the same time. One read gets pages that are adjacent in
/// their file, through `buffer`, which has room for all pages. Returns the good pages, a bit for
/// each.
uint32_t SnapshotCache::read_at_once(BatchReader& reader, const Frames& frames,
                                     std::span<const SnapshotPointer> pages,
                                     std::byte* buffer) const {
  CHECK(pages.size() == frames.count && frames.count <= kPagesPerRead && reader.pending() == 0);
  for (uint32_t i = 0, run = 0; i < frames.count; i += run) {
    run = run_from(pages, i);
    const SnapshotFiles::Place place = files_.place_of(pages[i], run);
    if (place.file == nullptr) continue;
    CHECK(reader.submit(*place.file, place.offset, {buffer + i * kPageBytes, run * kPageBytes}, i));
  }
  reader.start();
  uint32_t good = 0;
  while (reader.pending() != 0) {
    const BatchReader::Done done = reader.wait();
    const auto first = static_cast<uint32_t>(done.tag);
    const uint32_t run = run_from(pages, first);
    const uint64_t read = done.bytes ? *done.bytes / kPageBytes : 0;
    DCHECK(read <= run && first + run <= frames.count);
    for (uint32_t i = first; i < first + read; ++i) {
      PageHeader* const page = page_at(frames.numbers[i]);
      store_in_frame(page, buffer + i * kPageBytes);
      if (SnapshotFiles::is_intact(*page, pages[i])) good |= 1u << i;
    }
  }
  static_assert(kPagesPerRead <= 32);
  return good;
}

/// Enters the good pages into the cache's buckets. Gives back the frames of the others, and of
/// those that another reader has cached meanwhile. Returns the number of entered pages.
uint32_t SnapshotCache::list_together(const Frames& frames, std::span<const SnapshotPointer> pages,
                                      uint32_t good) {
  uint32_t listed = 0;
  const std::lock_guard guard(lock_);
  for (uint32_t i = 0; i < frames.count; i += run_from(pages, i)) ++misses_;
  for (uint32_t i = 0; i < frames.count; ++i) {
    if ((good >> i & 1) != 0 && !is_here(pages[i])) {
      list(frames.numbers[i], pages[i], kAhead);
      count_ghost(pages[i], frames.count);
      recent_reads_.add(*page_at(frames.numbers[i]));
      ++listed;
    } else {
      give_back(frames.numbers[i]);
    }
  }
  DCHECK(listed <= pages.size());
  return listed;
}

/// Counts the part of a wait that a larger cache would have saved, because it would have had this
/// page. `pages_of_wait`: number of pages that the device read at the same time.
void SnapshotCache::count_ghost(SnapshotPointer page, uint32_t pages_of_wait) {
  CHECK(pages_of_wait != 0 && kPartsOfWait % pages_of_wait == 0);
  const uint64_t saved = ghosts_.saved_by_more(page, evictions_, frame_count());
  ghost_parts_ += saved * (kPartsOfWait / pages_of_wait);
}

/// Adds a frame to the evicted ones, free at once. REQUIRES: it is not listed, and no reader has
/// seen it.
void SnapshotCache::give_back(uint32_t frame) {
  DCHECK((state_bits_[frame].load(std::memory_order_relaxed) & kListed) == 0);
  frame_states_[frame].free_from = 0;
  // Uses a place at the front of `evicted_` whose frame was taken. So repeated requests for a
  // damaged page do not lengthen `evicted_`.
  if (evicted_head_ != 0) {
    evicted_[--evicted_head_] = frame;
  } else {
    evicted_.insert(evicted_.begin(), frame);
  }
  DCHECK(evicted_.size() - evicted_head_ <= frame_count());
}

/// Makes a few frames free: borrows some, or evicts some. One thread at a time does this, and the
/// others wait for its frames.
void SnapshotCache::make_room() {
  const std::lock_guard sweeping(sweep_lock_);
  {
    const std::lock_guard guard(lock_);
    if (evicted_head_ != evicted_.size()) return;
  }
  if (borrow()) return;
  Victims victims;
  sweep(victims, std::min(kEvictAtOnce, std::max(1u, frame_count() / 4)), 0, hand_);
  const std::lock_guard guard(lock_);
  // A reader may have given frames back meanwhile.
  if (evicted_head_ != evicted_.size() || victims.count == 0) return;
  evicted_.clear();
  evicted_head_ = 0;
  const uint64_t round = unlist_all(victims, 0);
  for (uint32_t i = 0; i < victims.count; ++i) {
    frame_states_[victims.frames[i]].free_from = round;
    evicted_.push_back(victims.frames[i]);
  }
}

/// Returns the frame at a position: first the own frames, then the lent ones.
uint32_t SnapshotCache::frame_at(uint32_t position) const {
  DCHECK(position < frame_count());
  return position < own_count_ ? position : lent_[position - own_count_];
}

/// Selects up to `wanted` frames, from the position `first_position` on, that were not used since
/// the hand passed them last. If nearly all were used, it selects the first frames of this sweep.
/// It checks at most kMostSwept frames twice.
void SnapshotCache::sweep(Victims& victims, uint32_t wanted, uint32_t first_position,
                          uint32_t& hand) {
  const uint32_t end = frame_count();
  DCHECK(first_position < end && wanted <= victims.frames.size());
  const auto next = [&] {
    if (hand < first_position || hand >= end) hand = first_position;
    return frame_at(hand++);
  };
  const auto most =
      static_cast<uint32_t>(std::min<uint64_t>(3ull * (end - first_position), kMostSwept));
  const uint32_t begin = hand;
  uint32_t passed = 0;
  for (; victims.count < wanted && passed < most; ++passed) pick(next(), victims);
  const uint32_t last = hand;
  hand = begin;
  // Checks the same frames again: the first pass has just cleared their reference bits.
  uint32_t again = 0;
  for (; victims.count < wanted && again < most; ++again) pick(next(), victims);
  hand = last;
  DCHECK(victims.count <= wanted && passed + again <= 2 * kMostSwept);
  const uint64_t longest = longest_sweep_.load(std::memory_order_relaxed);
  longest_sweep_.store(std::max<uint64_t>(longest, passed + again), std::memory_order_relaxed);
}

/// Selects the frame if its reference bit is clear; otherwise clears the bit.
void SnapshotCache::pick(uint32_t frame, Victims& victims) {
  // Relaxed: lock_ guards what a frame holds.
  if ((state_bits_[frame].load(std::memory_order_relaxed) & kListed) == 0) return;
  if ((state_bits_[frame].fetch_and(kListed, std::memory_order_relaxed) & kReferenced) != 0) return;
  const auto end = victims.frames.begin() + victims.count;
  if (std::find(victims.frames.begin(), end, frame) == end) victims.frames[victims.count++] = frame;
}

/// Removes the frames from victim `first_victim` on from the table. Returns the round that begins
/// then: readers that are in it or in a later one cannot find the frames.
uint64_t SnapshotCache::unlist_all(const Victims& victims, uint32_t first_victim) {
  for (uint32_t i = first_victim; i < victims.count; ++i) unlist(victims.frames[i]);
  evictions_ += victims.count - first_victim;
  // seq_cst: a reader that sees the new round no longer finds the frames. oldest_round runs later
  // and sees every reader that may have found them.
  return round_.fetch_add(1, std::memory_order_seq_cst) + 1;
}

uint64_t SnapshotCache::oldest_round() const {
  uint64_t oldest = kIdle;
  // seq_cst pairs with SnapshotReader::enter_round.
  for (const Slot& slot : slots_) {
    oldest = std::min(oldest, slot.round.load(std::memory_order_seq_cst));
  }
  DCHECK(oldest == kIdle || oldest <= round_.load(std::memory_order_relaxed));
  return oldest;
}

void SnapshotCache::unlist(uint32_t frame) {
  DCHECK((state_bits_[frame].load(std::memory_order_relaxed) & kListed) != 0);
  const uint64_t hash = SnapshotCache::hash(frame_states_[frame].pointer);
  for (std::atomic<uint64_t>& entry : bucket_of(hash).entries) {
    if (entry.load(std::memory_order_relaxed) != entry_of(hash, frame)) continue;
    entry.store(0, std::memory_order_seq_cst);
  }
  // seq_cst: is_at loads this word, and must see the store in every later round.
  state_bits_[frame].store(0, std::memory_order_seq_cst);
  // The page's header has the id, too, but it is seldom in the processor's cache.
  storage_counts_.add_eviction(frame_states_[frame].storage_id);
  ghosts_.add(SnapshotPointer(frame_states_[frame].pointer), evictions_);
}

void SnapshotCache::list(uint32_t frame, SnapshotPointer pointer, uint8_t bits) {
  DCHECK((state_bits_[frame].load(std::memory_order_relaxed) & kListed) == 0);
  DCHECK(page_at(frame)->self == pointer.word());
  frame_states_[frame].pointer = pointer.word();
  frame_states_[frame].storage_id = page_at(frame)->storage_id;
  storage_counts_.add_read(frame_states_[frame].storage_id);
  // Leaves the reference bit clear, so that a scan that uses each page once does not evict pages in
  // use. Release: the page is complete for a reader that finds it through a hint.
  state_bits_[frame].store(kListed | bits, std::memory_order_release);
  const uint64_t hash = SnapshotCache::hash(pointer.word());
  Bucket& bucket = bucket_of(hash);
  std::atomic<uint64_t>* place = nullptr;
  for (std::atomic<uint64_t>& entry : bucket.entries) {
    if (entry.load(std::memory_order_relaxed) == 0) place = &entry;
  }
  if (place == nullptr) {
    // The bucket is full, so another frame loses its entry. That frame stays marked as listed, so
    // the CLOCK hand finds and frees it later.
    place = &bucket.entries[frame % kWays];
  }
  // Release pairs with the seq_cst load in find_frame.
  place->store(entry_of(hash, frame), std::memory_order_release);
}

}  // namespace atolldb
