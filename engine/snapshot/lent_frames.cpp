// Frames of the snapshot cache that the volatile pool lends (R81).
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "engine/hooks/mutants.h"
#include "engine/snapshot/snapshot_cache.h"
#include "shared/base/check.h"

namespace atolldb {

namespace {

/// Gives a page that is being lent the name of a new use, and returns it. So a thread that still
/// has the former name finds that it is outdated, whatever the frame holds now (R86).
uint64_t rename_lent(PageHeader* page) {
  const VolatilePointer before(page->self);
  if (before.word() == 0) return 0;  // the page was never used
  const uint64_t name =
      VolatilePointer::make(before.node(), before.generation() + 1u, before.index()).word();
  DCHECK(VolatilePointer(name).index() == before.index());
  std::atomic_ref(page->self).store(name, std::memory_order_seq_cst);
  return name;
}

}  // namespace

/// Borrows pages from the pool and adds them to the evicted frames, free at once. Returns false if
/// the pool lends none. REQUIRES: sweep_lock_ is held.
bool SnapshotCache::borrow() {
  if (lender_ == nullptr) return false;
  std::array<uint32_t, kPagesPerRead> pages;
  const uint32_t count = lender_->lend(pages.data(), kPagesPerRead);
  // Without lock_: a page that was never used gets its memory now.
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t frame = own_count_ + pages[i];
    DCHECK(frame < frame_end_ && page_at(frame) == lender_->page(pages[i]));
    frame_states_[frame].lent_name = rename_lent(page_at(frame));
  }
  const std::lock_guard guard(lock_);
  for (uint32_t i = 0; i < count; ++i) {
    const uint32_t frame = own_count_ + pages[i];
    Frame& state = frame_states_[frame];
    state.lent_at = static_cast<uint32_t>(lent_.size());
    lent_.push_back(frame);
    lent_count_.store(static_cast<uint32_t>(lent_.size()), std::memory_order_relaxed);
    give_back(frame);
  }
  return count != 0;
}

uint32_t SnapshotCache::return_lent(uint64_t wanted) {
  CHECK(lender_ != nullptr && wanted != 0);
  Victims victims;
  uint64_t round = 0;
  {
    const std::lock_guard sweeping(sweep_lock_);
    if (lent_.empty()) return 0;
    const auto most = static_cast<uint32_t>(std::min<uint64_t>(wanted, kReturnAtOnce));
    uint32_t empty = 0;
    {
      const std::lock_guard guard(lock_);
      take_evicted_lent(most, victims);
      empty = victims.count;
    }
    sweep(victims, most, own_count_, return_hand_);
    if (victims.count == 0) return 0;
    const std::lock_guard guard(lock_);
    round = unlist_all(victims, empty);
    for (uint32_t i = 0; i < victims.count; ++i) remove_lent(victims.frames[i]);
    lent_count_.store(static_cast<uint32_t>(lent_.size()), std::memory_order_relaxed);
  }
  if (!fault::return_lent_at_once) await_round(round);
  std::array<uint32_t, kReturnAtOnce> pages;
  for (uint32_t i = 0; i < victims.count; ++i) {
    const uint32_t frame = victims.frames[i];
    std::atomic_ref(page_at(frame)->self)
        .store(frame_states_[frame].lent_name, std::memory_order_relaxed);
    pages[i] = frame - own_count_;
  }
  lender_->take_back(pages.data(), victims.count);
  return victims.count;
}

/// Moves up to `most` lent frames, which hold no page, from `evicted_` to `victims`.
void SnapshotCache::take_evicted_lent(uint32_t most, Victims& victims) {
  const auto moves_to_victims = [&](uint32_t frame) {
    if (frame < own_count_ || victims.count == most) return false;
    victims.frames[victims.count++] = frame;
    return true;
  };
  DCHECK(victims.count == 0 && evicted_head_ <= evicted_.size());
  const auto begin = evicted_.begin() + evicted_head_;
  evicted_.erase(std::remove_if(begin, evicted_.end(), moves_to_victims), evicted_.end());
}

/// Removes a frame from the lent ones.
void SnapshotCache::remove_lent(uint32_t frame) {
  DCHECK(frame >= own_count_ && frame < frame_end_);
  const uint32_t at = frame_states_[frame].lent_at;
  CHECK(at < lent_.size() && lent_[at] == frame);
  lent_[at] = lent_.back();
  frame_states_[lent_[at]].lent_at = at;
  lent_.pop_back();
}

/// Waits until no reader is in an earlier round.
void SnapshotCache::await_round(uint64_t round) {
  constexpr std::chrono::microseconds kPause{100};
  for (;;) {
    {
      const std::lock_guard guard(lock_);
      if (oldest_round() >= round) return;
    }
    std::this_thread::sleep_for(kPause);
  }
}

}  // namespace atolldb
