#include "engine/gleaner/exchange.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "shared/base/check.h"
#include "shared/base/try.h"
#include "shared/sync/wait_word.h"

namespace atolldb {
namespace {

constexpr uint64_t kInboxMagic = 0x584f424e494c5441;  // "ATLINBOX"
constexpr uint32_t kGivenUp = uint32_t{1} << 31;
constexpr uint64_t kUnitBytes = sizeof(InboxMessage);

constexpr uint64_t kUsedBits = 27;
constexpr uint64_t kUsedMask = (uint64_t{1} << kUsedBits) - 1;
constexpr uint64_t kOneWriter = uint64_t{1} << kUsedBits;
constexpr uint64_t kWritersMask = uint64_t{ReducerInbox::kMaxMappers} << kUsedBits;
constexpr uint64_t kClosed = uint64_t{1} << 39;
constexpr uint32_t kRunShift = 40;
static_assert((kWritersMask & kClosed) == 0 && kWritersMask + kOneWriter == kClosed);
static_assert(ReducerInbox::kMaxHalfBytes / kUnitBytes < kUsedMask);

uint64_t status_of(uint32_t run, bool is_closed) {
  return uint64_t{run} << kRunShift | (is_closed ? kClosed : 0);
}
uint32_t run_of(uint64_t status) { return static_cast<uint32_t>(status >> kRunShift); }

uint64_t units(uint64_t record_bytes) {
  return (sizeof(InboxMessage) + record_bytes + kUnitBytes - 1) / kUnitBytes;
}

}  // namespace

void InboxReservation::release(uint32_t records) {
  CHECK(inbox_ != nullptr);  // this reservation was neither announced nor moved from
  message_->records = records;
  ReducerInbox& inbox = *std::exchange(inbox_, nullptr);
  // Release pairs with the acquire accesses in `close` and `begin`: a thread that sees the
  // reservation end sees the copied records.
  const uint64_t before =
      inbox.control_->halves[half_].status.fetch_sub(kOneWriter, std::memory_order_acq_rel);
  CHECK((before & kWritersMask) != 0);
  if ((before & kClosed) != 0 && (before & kWritersMask) == kOneWriter) {
    ReducerInbox::signal(inbox.control_->reducer_signal);
  }
}

uint64_t ReducerInbox::bytes_for(uint64_t half_bytes) {
  return sizeof(InboxControl) + 2 * ((half_bytes + kUnitBytes - 1) / kUnitBytes * kUnitBytes);
}

void ReducerInbox::format(std::byte* memory, uint64_t bytes) {
  CHECK(reinterpret_cast<uintptr_t>(memory) % alignof(InboxControl) == 0);
  CHECK(bytes >= bytes_for(kMinHalfBytes));
  auto* control = new (memory) InboxControl{};
  control->half_bytes =
      std::min((bytes - sizeof(InboxControl)) / 2 / kUnitBytes * kUnitBytes, kMaxHalfBytes);
  CHECK(control->half_bytes >= kMinHalfBytes);
  for (InboxControl::Half& half : control->halves) {
    half.status.store(kClosed, std::memory_order_relaxed);
  }
  control->run.store(kGivenUp, std::memory_order_relaxed);
  control->magic = kInboxMagic;
}

ReducerInbox::ReducerInbox(std::byte* memory, std::function<bool()> is_over)
    : control_(reinterpret_cast<InboxControl*>(memory)), is_over_(std::move(is_over)) {
  CHECK(reinterpret_cast<uintptr_t>(memory) % alignof(InboxControl) == 0);
  CHECK(control_->magic == kInboxMagic);
  CHECK(control_->half_bytes >= kMinHalfBytes && control_->half_bytes <= kMaxHalfBytes &&
        control_->half_bytes % kUnitBytes == 0);
  CHECK(is_over_ != nullptr);
}

std::byte* ReducerInbox::half(uint32_t number) const {
  DCHECK(number < 2);
  return reinterpret_cast<std::byte*>(control_ + 1) + number * control_->half_bytes;
}

void ReducerInbox::signal(std::atomic<uint32_t>& word) {
  // Release pairs with the acquire load of a thread that reads this word before the other words of
  // the inbox.
  word.fetch_add(1, std::memory_order_release);
  wake(word, kWakeAll);
}

Result<void> ReducerInbox::check(uint32_t run) const {
  CHECK(run >= 1 && run <= kMaxRun);
  // Acquire pairs with the release in `begin`: if the load returns `run`, the other words of the
  // control block are from this run.
  const uint32_t now = control_->run.load(std::memory_order_acquire);
  if (now == (run | kGivenUp)) {
    return make_error(ExitCode::failed, fmt::format("snapshot {}: its job was given up", run));
  }
  if (now != run) {
    return make_error(ExitCode::failed,
                      fmt::format("snapshot {}: its job has ended: the inbox serves job {}", run,
                                  now & ~kGivenUp));
  }
  if (is_over_()) {
    return make_error(ExitCode::failed,
                      fmt::format("snapshot {}: its job ends because the cluster stops", run));
  }
  return {};
}

Result<void> ReducerInbox::begin(uint32_t run, uint32_t mapper_count) {
  CHECK(run >= 1 && run <= kMaxRun && mapper_count <= kMaxMappers);
  const uint32_t old = control_->run.load(std::memory_order_relaxed) & ~kGivenUp;
  CHECK(old < run);  // a run number is a snapshot id, and those ascend
  give_up(old);      // ends the waits of the old run, if any are left
  for (uint32_t i = 0; i < 2; ++i) {
    std::atomic<uint64_t>& word = control_->halves[i].status;
    for (;;) {
      const uint32_t seen = control_->reducer_signal.load(std::memory_order_acquire);
      // Closes the half first, so that the last writer signals when it ends its reservation.
      // Acquire pairs with the release of that writer.
      uint64_t status = word.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
      if ((status & kWritersMask) == 0 &&
          word.compare_exchange_strong(status, status_of(run, i != 0), std::memory_order_acq_rel)) {
        break;
      }
      if (is_over_()) {
        return make_error(
            ExitCode::failed,
            fmt::format("snapshot {}: its job does not begin because the cluster stops", run));
      }
      wait_on(control_->reducer_signal, seen, kMaxSleep);
    }
  }
  control_->mapper_count = mapper_count;
  control_->swaps.store(0, std::memory_order_relaxed);
  control_->swaps_wanted.store(0, std::memory_order_relaxed);
  control_->finished.store(uint64_t{run} << 32, std::memory_order_relaxed);
  // Release pairs with the acquire in `check`.
  control_->run.store(run, std::memory_order_release);
  return {};
}

Result<InboxReservation> ReducerInbox::reserve(uint32_t run, uint32_t storage_id, uint32_t bytes) {
  CHECK(bytes >= 8 && bytes % 8 == 0 && bytes <= max_message_bytes());
  const uint64_t more = units(bytes);
  for (;;) {
    const uint32_t seen = control_->mapper_signal.load(std::memory_order_acquire);
    ATOLL_TRY(check(run));
    // Acquire pairs with the release in `swap`: the half that `swaps` selects was opened before.
    const uint32_t swaps = control_->swaps.load(std::memory_order_acquire);
    std::atomic<uint64_t>& word = control_->halves[swaps % 2].status;
    uint64_t status = word.load(std::memory_order_acquire);
    if (run_of(status) != run) continue;  // `begin` is in progress: `check` will report it
    if ((status & kClosed) != 0) {
      // If the half is closed but not the last one, the other half is open already: retry with it.
      if (control_->swaps.load(std::memory_order_acquire) != swaps) continue;
      return make_error(
          ExitCode::failed,
          fmt::format("snapshot {}: its reducer has received the last records already", run));
    }
    const uint64_t used = status & kUsedMask;
    if ((used + more) * kUnitBytes <= control_->half_bytes) {
      // Acquire pairs with the release in `swap`: the reducer had finished reading this half.
      if (!word.compare_exchange_weak(status, status + more + kOneWriter,
                                      std::memory_order_acq_rel)) {
        continue;
      }
      CHECK((status & kWritersMask) != kWritersMask);  // the count has not overflowed
      auto* message = reinterpret_cast<InboxMessage*>(half(swaps % 2) + used * kUnitBytes);
      *message = {.bytes = bytes, .records = 0, .storage_id = storage_id, .spare = {}};
      return InboxReservation(*this, swaps % 2, message);
    }
    DCHECK(used != 0);  // an empty half has room for any message
    want_swap(swaps + 1);
    wait_on(control_->mapper_signal, seen, kMaxSleep);
  }
}

void ReducerInbox::want_swap(uint32_t swaps) {
  uint32_t wanted = control_->swaps_wanted.load(std::memory_order_relaxed);
  while (wanted < swaps) {
    // Release pairs with the acquire in next_batch. The signal wakes the reducer.
    if (control_->swaps_wanted.compare_exchange_weak(wanted, swaps, std::memory_order_release)) {
      signal(control_->reducer_signal);
      return;
    }
  }
}

Result<void> ReducerInbox::finish(uint32_t run) {
  ATOLL_TRY(check(run));
  uint64_t finished = control_->finished.load(std::memory_order_relaxed);
  do {
    // If another run has begun since the check, this mapper must not be counted in it.
    if (finished >> 32 != run) return check(run);
    CHECK(static_cast<uint32_t>(finished) < kMaxMappers);
    // Release pairs with the acquire in next_batch: the reducer sees all messages of this mapper.
  } while (!control_->finished.compare_exchange_weak(
      finished, finished + 1, std::memory_order_release, std::memory_order_relaxed));
  signal(control_->reducer_signal);
  return {};
}

void ReducerInbox::swap(uint32_t run, uint32_t swaps) {
  // The reducer has finished with the other half, and a closed half has no writers. Release pairs
  // with the acquire loads of the mappers that reserve room in it.
  std::atomic<uint64_t>& other = control_->halves[(swaps + 1) % 2].status;
  const uint64_t before = other.load(std::memory_order_relaxed);
  CHECK((before & (kClosed | kWritersMask)) == kClosed && run_of(before) == run);
  other.store(status_of(run, false), std::memory_order_release);
  control_->swaps.store(swaps + 1, std::memory_order_release);
  signal(control_->mapper_signal);
}

Result<InboxBatch> ReducerInbox::close(uint32_t run, uint32_t number, bool is_last) {
  std::atomic<uint64_t>& word = control_->halves[number].status;
  if ((word.fetch_or(kClosed, std::memory_order_acq_rel) & kClosed) != 0) {
    return make_error(
        ExitCode::failed,
        fmt::format("snapshot {}: its reducer has received the last records already", run));
  }
  for (;;) {
    const uint32_t seen = control_->reducer_signal.load(std::memory_order_acquire);
    // Acquire pairs with the release in `release`.
    const uint64_t status = word.load(std::memory_order_acquire);
    if ((status & kWritersMask) == 0) {
      const uint64_t bytes = (status & kUsedMask) * kUnitBytes;
      CHECK((status & kClosed) != 0 && bytes <= control_->half_bytes);
      return InboxBatch{{half(number), bytes}, is_last};
    }
    ATOLL_TRY(check(run));
    wait_on(control_->reducer_signal, seen, kMaxSleep);
  }
}

Result<InboxBatch> ReducerInbox::next_batch(uint32_t run) {
  for (;;) {
    const uint32_t seen = control_->reducer_signal.load(std::memory_order_acquire);
    ATOLL_TRY(check(run));
    const uint32_t swaps = control_->swaps.load(std::memory_order_relaxed);
    // Acquire pairs with the release in `finish`.
    const uint64_t finished = control_->finished.load(std::memory_order_acquire);
    if (static_cast<uint32_t>(finished) >= control_->mapper_count) {
      return close(run, swaps % 2, true);
    }
    // Acquire pairs with the release in want_swap.
    if (control_->swaps_wanted.load(std::memory_order_acquire) > swaps) {
      swap(run, swaps);
      return close(run, swaps % 2, false);
    }
    wait_on(control_->reducer_signal, seen, kMaxSleep);
  }
}

void ReducerInbox::give_up(uint32_t run) {
  uint32_t expected = run;
  // Release suffices, because a thread that sees kGivenUp reads no other data of this thread.
  control_->run.compare_exchange_strong(expected, run | kGivenUp, std::memory_order_release,
                                        std::memory_order_relaxed);
  signal(control_->mapper_signal);
  signal(control_->reducer_signal);
}

Result<InboxMessageView> take_message(std::span<const std::byte>& batch) {
  CHECK(batch.size() >= sizeof(InboxMessage));
  const auto& message = *reinterpret_cast<const InboxMessage*>(batch.data());
  const uint64_t bytes = units(message.bytes) * kUnitBytes;
  if (bytes > batch.size() || message.bytes % 8 != 0) {
    return make_error(ExitCode::corruption,
                      fmt::format("inbox of a reducer: a message has {} bytes, but {} bytes are "
                                  "left: the shared memory was overwritten: restart the cluster",
                                  message.bytes, batch.size()));
  }
  const InboxMessageView view = {message.storage_id, message.records,
                                 batch.subspan(sizeof(InboxMessage), message.bytes)};
  batch = batch.subspan(bytes);
  return view;
}

}  // namespace atolldb
