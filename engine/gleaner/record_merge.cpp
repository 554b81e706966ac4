#include "engine/gleaner/record_merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "shared/base/check.h"
#include "shared/base/try.h"

namespace atolldb {
namespace {

/// Distance in bytes at which the records of an input are prefetched. The hardware does not predict
/// that a window begins where the one before it ended.
constexpr size_t kPrefetchBytes = 512;

}  // namespace

void RecordMerge::add(std::span<const std::byte> records) {
  CHECK(!has_started_);
  CHECK(reinterpret_cast<uintptr_t>(records.data()) % alignof(LogRecord) == 0);
  inputs_.push_back({.at = records.data(), .end = records.data() + records.size(), .run = nullptr});
}

void RecordMerge::add(std::unique_ptr<SortedRunReader> run) {
  CHECK(!has_started_ && run != nullptr);
  inputs_.push_back({.run = std::move(run)});
}

bool RecordMerge::has_whole_record(const Input& input) {
  const auto room = static_cast<uint64_t>(input.end - input.at);
  const auto& record = *reinterpret_cast<const LogRecord*>(input.at);
  return room >= sizeof record && record.length <= std::min<uint64_t>(room, kMaxGleanedBytes) &&
         record.length % 8 == 0 &&
         record.length >= LogRecord::bytes(record.key_bytes, record.payload_bytes);
}

std::unexpected<Error> RecordMerge::no_record(const Input& input) {
  return make_error(ExitCode::corruption,
                    fmt::format("inbox of a reducer: {} bytes are no log record: the shared memory "
                                "was overwritten: restart the cluster",
                                input.end - input.at));
}

void RecordMerge::wait(uint32_t number, uint32_t storage) {
  DCHECK(waiting_.size() < inputs_.size());
  waiting_.push_back({storage, number});
  std::ranges::push_heap(waiting_, std::greater());
}

Result<void> RecordMerge::start() {
  CHECK(!has_started_);
  has_started_ = true;
  for (uint32_t i = 0; i < inputs_.size(); ++i) {
    Input& input = inputs_[i];
    if (input.run != nullptr) {
      ATOLL_ASSIGN(auto chunk, input.run->next());
      input.at = chunk.data();
      input.end = chunk.data() + chunk.size();
    }
    if (input.at == input.end) continue;
    if (!has_whole_record(input)) return no_record(input);
    wait(i, reinterpret_cast<const LogRecord*>(input.at)->storage_id);
  }
  return load();
}

/// Begins with the lowest storage for which an input waits. Returns false if there is none.
Result<bool> RecordMerge::begin_storage() {
  CHECK(windows_.empty());
  if (waiting_.empty()) return false;
  storage_ = waiting_.front().storage;
  while (!waiting_.empty() && waiting_.front().storage == storage_) {
    windows_.push_back({.input = waiting_.front().input});
    std::ranges::pop_heap(waiting_, std::greater());
    waiting_.pop_back();
  }
  const size_t share = std::clamp(kWindowKeys / windows_.size(), kMinWindow, kMaxWindow);
  size_t count = 0;
  for (Window& window : windows_) {
    const Input& input = inputs_[window.input];
    // There are many short messages, and a short message needs few keys. With room for one more key
    // than it has, `fill` finds its end.
    const size_t most = static_cast<size_t>(input.end - input.at) / sizeof(LogRecord) + 1;
    window.capacity = input.run == nullptr ? std::min(share, most) : share;
    CHECK(window.capacity >= 2);
    count += window.capacity;
  }
  if (count > key_count_) {
    keys_ = std::make_unique_for_overwrite<SortKey[]>(count);
    unsorted_ = std::make_unique_for_overwrite<SortKey[]>(count);
    sorter_ = std::make_unique<KeySorter>(count);
    key_count_ = count;
  }
  SortKey* room = keys_.get();
  for (Window& window : windows_) {
    window.room = room;
    window.keys = {room, 0};
    room += window.capacity;
  }
  CHECK(room == keys_.get() + count && count <= key_count_);
  return true;
}

/// Fills all windows, and removes those that remain empty.
Result<void> RecordMerge::fill_windows() {
  for (Window& window : windows_) {
    if (window.keys.size() == window.capacity || window.is_complete) continue;
    ATOLL_TRY(fill(window));
  }
  std::erase_if(windows_, [](const Window& window) { return window.keys.empty(); });
  return {};
}

/// Moves an input that is at the end of a chunk to its next chunk. Returns false if there is no
/// next chunk. Also returns false if the window has records of the chunk before the current one,
/// because the next chunk would overwrite them.
Result<bool> RecordMerge::refill(Window& window) {
  Input& input = inputs_[window.input];
  DCHECK(input.at == input.end && window.old_keys <= window.keys.size());
  if (window.old_keys != 0) return false;
  std::span<const std::byte> chunk;
  if (input.run != nullptr) {
    ATOLL_ASSIGN(chunk, input.run->next());
  }
  if (chunk.empty()) {
    window.is_complete = true;
    return false;
  }
  window.old_keys = static_cast<uint32_t>(window.keys.size());
  input.at = chunk.data();
  input.end = chunk.data() + chunk.size();
  return true;
}

/// Reads records until the window is full or complete, or until `refill` returns false. A window
/// that is not complete then has at least two keys.
Result<void> RecordMerge::fill(Window& window) {
  std::ranges::copy(window.keys, window.room);
  window.keys = {window.room, window.keys.size()};
  Input& input = inputs_[window.input];
  size_t count = window.keys.size();
  while (count < window.capacity) {
    if (input.at == input.end) [[unlikely]] {
      window.keys = {window.room, count};
      ATOLL_ASSIGN(const bool has_more, refill(window));
      if (!has_more) break;
    }
    if (!has_whole_record(input)) [[unlikely]]
      return no_record(input);
    const auto& record = *reinterpret_cast<const LogRecord*>(input.at);
    if (record.storage_id != storage_) [[unlikely]] {
      DCHECK(record.storage_id > storage_);  // each input is in sort order
      window.is_complete = true;
      wait(window.input, record.storage_id);
      break;
    }
    __builtin_prefetch(input.at + kPrefetchBytes);
    __builtin_prefetch(input.at + kPrefetchBytes + 64);
    window.room[count] = SortKey::of(record);
    DCHECK(count == 0 || !(window.room[count] < window.room[count - 1]));
    ++count;
    input.at += record.length;
  }
  window.keys = {window.room, count};
  DCHECK(window.is_complete || count >= 2);
  return {};
}

std::span<SortKey> RecordMerge::Window::take(size_t count) {
  DCHECK(count <= keys.size());
  const std::span<SortKey> taken = keys.first(count);
  keys = keys.subspan(count);
  old_keys -= static_cast<uint32_t>(std::min<size_t>(old_keys, count));
  return taken;
}

/// Takes the keys of a round from the windows, and returns them sorted and without covered records.
///
/// The bound is the last key of the window `lowest`. It stays in the window, and decides whether
/// the record before it is elided. All records that are not in a window sort after it.
std::span<SortKey> RecordMerge::next_round() {
  const Window* lowest = nullptr;
  for (const Window& window : windows_) {
    if (window.is_complete) continue;
    if (lowest == nullptr || window.keys.back() < lowest->keys.back()) lowest = &window;
  }
  DCHECK(lowest == nullptr || lowest->keys.size() >= 2);
  std::optional<SortKey> bound;
  if (lowest != nullptr) bound = lowest->keys.back();
  std::span<SortKey> first;  // taken from the first window that has keys of this round
  size_t count = 0;
  for (Window& window : windows_) {
    size_t taken = window.keys.size();
    if (&window == lowest) {
      --taken;
    } else if (bound) {
      // Of records at the bound, those of inputs before `lowest` come first.
      const bool is_before = &window < lowest;
      const auto stays = [&](const SortKey& key) {
        return is_before ? *bound < key : !(key < *bound);
      };
      if (stays(window.keys.front())) continue;
      const auto end = std::ranges::partition_point(
          window.keys, [&](const SortKey& key) { return !stays(key); });
      taken = static_cast<size_t>(end - window.keys.begin());
    }
    CHECK(count + taken <= key_count_);
    const std::span<SortKey> keys = window.take(taken);
    if (count == 0) {
      first = keys;
    } else {
      if (count == first.size()) std::ranges::copy(first, unsorted_.get());
      std::ranges::copy(keys, unsorted_.get() + count);
    }
    count += taken;
  }
  // The keys of a single window are sorted.
  const std::span<SortKey> sorted =
      count == first.size() ? first : sorter_->sort({unsorted_.get(), count});
  return elide(sorted, bound ? &*bound : nullptr);
}

/// Removes each record that the next record of its key covers. `after`: the record after the last
/// one, or null if it belongs to another storage.
///
/// The next record may be elided as well. The last record of such a chain is kept, and has the
/// bytes of all. No addition fits between two neighbours of the chain (R83).
std::span<SortKey> RecordMerge::elide(std::span<SortKey> sorted, const SortKey* after) {
  size_t kept = 0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    const SortKey* next = i + 1 < sorted.size() ? &sorted[i + 1] : after;
    if (next != nullptr && is_same_key(*next, sorted[i]) &&
        covers(*next->record, *sorted[i].record)) {
      continue;
    }
    if (kept != i) sorted[kept] = sorted[i];
    ++kept;
  }
  elided_ += sorted.size() - kept;
  return sorted.first(kept);
}

/// Loads the next batch.
Result<void> RecordMerge::load() {
  DCHECK(batch_.empty());
  while (batch_.empty()) {
    if (windows_.empty()) {
      ATOLL_ASSIGN(const bool has_more, begin_storage());
      if (!has_more) break;
    }
    ATOLL_TRY(fill_windows());
    if (!windows_.empty()) batch_ = next_round();
  }
  return {};
}

}  // namespace atolldb
