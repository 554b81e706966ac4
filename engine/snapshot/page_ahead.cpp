#include "engine/snapshot/page_ahead.h"

#include <algorithm>
#include <cstring>

#include "engine/format/stand_in.h"
#include "engine/snapshot/snapshot_cache.h"
#include "shared/base/check.h"

namespace atolldb {

PageAhead::PageAhead(const SnapshotFiles& files, BatchReader::Method method,
                     const SnapshotCache* cache)
    : files_(files), cache_(cache), reader_(BatchReader::create(BatchReader::kMaxDepth, method)) {}

void PageAhead::begin_window() {
  start();
  window_ = kMaxPages - window_;
  next_ = window_;
  end_ = window_ + kMaxPages;
  for (uint32_t i = window_; i < window_ + kMaxPages; ++i) {
    while (slots_[i].state == State::submitted) finish_one();
    slots_[i].state = State::free;
  }
}

/// Returns a slot of the page, or null. A page between requested ones may have two slots. Then one
/// that has the page is better.
PageAhead::Slot* PageAhead::find(SnapshotPointer page) {
  Slot* found = nullptr;
  for (Slot& slot : slots_) {
    if (slot.state == State::free || slot.word != page.word()) continue;
    if (slot.state == State::good || slot.state == State::copied) return &slot;
    if (found == nullptr) found = &slot;
  }
  return found;
}

bool PageAhead::request(SnapshotPointer page) {
  CHECK(!page.is_null() && !is_stand_in(page));
  if (find(page) != nullptr) return true;
  const uint64_t run = slots_[first_].word;
  const bool continues =
      count_ != 0 && joins(SnapshotPointer(run), SnapshotPointer(run + count_ - 1), page);
  if (!continues && copy_to_window(page)) return true;
  const auto wanted = continues ? static_cast<uint32_t>(page.word() - run) + 1 : 1;
  if ((continues ? first_ : next_) + wanted > end_) return false;
  if (!continues) {
    submit_run();
    first_ = next_;
  }
  for (; count_ < wanted; ++count_) {
    CHECK(slots_[first_ + count_].state == State::free);
    slots_[first_ + count_] = {page.word() - (wanted - 1) + count_, 1, State::requested};
  }
  next_ = first_ + count_;
  return true;
}

/// Copies a page of the cache into the last free slot of the window. Returns false if the cache
/// lacks the page, or if there is no such slot.
bool PageAhead::copy_to_window(SnapshotPointer page) {
  CHECK(next_ <= end_ && end_ <= window_ + kMaxPages);
  if (cache_ == nullptr || next_ == end_) return false;
  CHECK(slots_[end_ - 1].state == State::free);
  if (!cache_->copy_page(page, buffer(end_ - 1))) return false;
  slots_[--end_] = {page.word(), 1, State::copied};
  return true;
}

/// Submits the run of adjacent pages that was requested last.
void PageAhead::submit_run() {
  if (count_ == 0) return;
  Slot& first = slots_[first_];
  const SnapshotFiles::Place place = files_.place_of(SnapshotPointer(first.word), count_);
  first.run = count_;
  while (reader_->pending() == BatchReader::kMaxDepth) finish_one();
  const bool is_submitted =
      place.file != nullptr &&
      reader_->submit(*place.file, place.offset, {buffer(first_), count_ * kPageBytes}, first_);
  for (uint32_t i = first_; i < first_ + count_; ++i) {
    CHECK(slots_[i].state == State::requested);
    slots_[i].state = is_submitted ? State::submitted : State::bad;
  }
  count_ = 0;
}

void PageAhead::start() {
  submit_run();
  reader_->start();
}

void PageAhead::finish_one() {
  const BatchReader::Done done = reader_->wait();
  const auto first = static_cast<uint32_t>(done.tag);
  CHECK(first < kSlots);
  const uint32_t count = slots_[first].run;
  CHECK(count != 0 && first + count <= kSlots);
  for (uint32_t i = first; i < first + count; ++i) {
    CHECK(slots_[i].state == State::submitted);
    const auto& page = *reinterpret_cast<const PageHeader*>(buffer(i));
    const bool is_good = done.bytes && *done.bytes >= (i - first + 1) * kPageBytes &&
                         SnapshotFiles::is_intact(page, SnapshotPointer(slots_[i].word));
    slots_[i].state = is_good ? State::good : State::bad;
  }
}

bool PageAhead::take(SnapshotPointer page, PageHeader* into) {
  Slot* slot = find(page);
  if (slot == nullptr) return false;
  if (slot->state == State::requested) start();
  while (slot->state == State::submitted) finish_one();
  const bool is_copied = slot->state == State::copied;
  const bool is_good = is_copied || slot->state == State::good;
  if (is_copied) ++cached_count_;
  if (is_good) {
    std::memcpy(reinterpret_cast<std::byte*>(into),
                buffer(static_cast<uint32_t>(slot - slots_.data())), kPageBytes);
  }
  slot->state = State::free;
  return is_good;
}

bool PageAhead::copy_cached(SnapshotPointer page, PageHeader* into) const {
  CHECK(!page.is_null() && into != nullptr);
  return cache_ != nullptr && cache_->copy_page(page, reinterpret_cast<std::byte*>(into));
}

void PageAhead::finish() {
  start();
  while (reader_->pending() != 0) finish_one();
}

void PageAhead::clear() {
  finish();
  for (Slot& slot : slots_) slot.state = State::free;
  window_ = 0;
  next_ = 0;
  end_ = kMaxPages;
}

}  // namespace atolldb
