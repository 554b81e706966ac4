// A reducer's inbox in shared memory, through which mappers of all processes send sorted records.
// The inbox has a different address in each process.
// Source: [FOEDUS15] section 7.3; rule R40.
//
// The inbox has two halves: mappers write to the current half while the reducer works on the other.
// A mapper reserves room by one atomic change of the half's status, copies its records once, and
// announces them. A mapper that finds the current half full requests a swap and waits. The reducer
// opens the other half, then closes the full one. Then it waits until all reservations in the
// closed half are announced or void; mappers use the other half meanwhile.
//
//  status of a half:  63      40   39    38       27 26            0
//                    [ run 24 ][closed][ writers 12 ][ used, 64 bytes ]
//
// Run numbers are snapshot ids and are never reused. So the compare-and-swap of a mapper of an
// older run fails. Every wait ends when the run is aborted (`give_up`), or when `is_over` returns
// true.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Header of a message. The records of one storage follow, in sort order.
struct alignas(64) InboxMessage {
  uint32_t bytes;    // bytes of records
  uint32_t records;  // 0: the message is void, and its bytes do not matter
  uint32_t storage_id;
  uint32_t spare[13];
};
static_assert(sizeof(InboxMessage) == 64 && std::is_standard_layout_v<InboxMessage>);

/// The control block of an inbox. The two halves follow it.
struct InboxControl {
  uint64_t magic;
  uint64_t half_bytes;
  /// Run number, with kGivenUp set if the run was aborted. Writers: the owner, at the start of a
  /// run; any thread, to abort it.
  alignas(64) std::atomic<uint32_t> run;
  uint32_t mapper_count;  // writer: the owner
  /// Number of swaps so far. The current half is number (swaps % 2). Writer: the reducer.
  alignas(64) std::atomic<uint32_t> swaps;
  /// Number of swaps that mappers have requested so far. Writers: mappers.
  alignas(64) std::atomic<uint32_t> swaps_wanted;
  /// [ run 32 ][ mappers that have finished 32 ]
  std::atomic<uint64_t> finished;
  /// Signals. Each changes whenever the mappers, or the reducer, should check the inbox again.
  /// These threads sleep on their signal (wait_on).
  alignas(64) std::atomic<uint32_t> mapper_signal;
  alignas(64) std::atomic<uint32_t> reducer_signal;
  struct alignas(64) Half {
    std::atomic<uint64_t> status;
  };
  Half halves[2];
};
static_assert(std::is_standard_layout_v<InboxControl>);
static_assert(sizeof(InboxControl) == 512 && alignof(InboxControl) == 64);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class ReducerInbox;

/// Room for one message. A reservation that is destroyed without `announce` is void (R40), so the
/// reducer does not wait for it.
class InboxReservation {
 public:
  InboxReservation(InboxReservation&& other) noexcept
      : inbox_(std::exchange(other.inbox_, nullptr)),
        half_(other.half_),
        message_(other.message_) {}
  InboxReservation& operator=(InboxReservation&&) = delete;
  ~InboxReservation() {
    if (inbox_ != nullptr && !fault::keep_void_reservations) release(0);
  }

  /// Returns the memory for the records.
  std::span<std::byte> bytes() const {
    DCHECK(inbox_ != nullptr);  // not announced yet
    return {reinterpret_cast<std::byte*>(message_ + 1), message_->bytes};
  }
  /// Announces the message after its records were copied. `records`: number of records, at least 1.
  void announce(uint32_t records) {
    CHECK(records > 0);
    release(records);
  }

 private:
  friend class ReducerInbox;
  InboxReservation(ReducerInbox& inbox, uint32_t half, InboxMessage* message)
      : inbox_(&inbox), half_(half), message_(message) {}
  void release(uint32_t records);

  ReducerInbox* inbox_;
  uint32_t half_;
  InboxMessage* message_;
};

/// A closed half, to which no mapper writes any more.
struct InboxBatch {
  std::span<const std::byte> bytes;  // adjacent messages
  bool is_last = false;              // true: all mappers have finished
};

/// This process's view of one inbox, for the reducer, the mappers and the owner. The owner formats
/// the inbox and begins its runs.
/// Thread: any number of mappers, and one thread as the reducer.
class ReducerInbox {
 public:
  static constexpr uint64_t kMinHalfBytes = 8192;
  static constexpr uint64_t kMaxHalfBytes = uint64_t{64} << 26;
  static constexpr uint32_t kMaxMappers = 4095;
  static constexpr uint32_t kMaxRun = (uint32_t{1} << 24) - 1;

  /// Returns the memory in bytes for two halves of `half_bytes`, rounded up to 64.
  static uint64_t bytes_for(uint64_t half_bytes);
  /// Initializes an inbox. The owner calls it once. `memory`: aligned to 64. `bytes`: at least
  /// bytes_for(kMinHalfBytes).
  static void format(std::byte* memory, uint64_t bytes);

  /// `memory`: formatted. `is_over`: returns true if the waits of all runs must end, because the
  /// cluster has failed or stops. Waiting threads call it at least once per kMaxSleep.
  ReducerInbox(std::byte* memory, std::function<bool()> is_over);

  /// Begins a run of `mapper_count` mappers. Mappers of an earlier run get errors from now on; the
  /// call waits until none of them is copying.
  /// Thread: the owner, before any mapper of the run starts.
  /// REQUIRES: `run` in [1, kMaxRun] was not used before; the reducer of the previous run has
  /// ended.
  Result<void> begin(uint32_t run, uint32_t mapper_count);

  /// Reserves room for `bytes` of records: a multiple of 8, from 8 to max_message_bytes(). Waits
  /// for a swap if the half is full.
  /// Error: code failed if the run was aborted, the inbox has another run, or `is_over` returned
  /// true.
  /// Thread: a mapper.
  Result<InboxReservation> reserve(uint32_t run, uint32_t storage_id, uint32_t bytes);
  uint64_t max_message_bytes() const { return control_->half_bytes - sizeof(InboxMessage); }
  /// Declares that this mapper sends no more messages in this run.
  /// Thread: a mapper, once, without open reservations.
  Result<void> finish(uint32_t run);

  /// Returns the next full half, or the last half, which may have free room. After the last half it
  /// returns an error. The half that was returned before is invalid, because mappers may write to
  /// it again.
  /// Thread: the reducer.
  Result<InboxBatch> next_batch(uint32_t run);

  /// Error: code failed if the run was aborted, the inbox has another run, or `is_over` returned
  /// true.
  /// Thread: any.
  Result<void> check(uint32_t run) const;

  /// Aborts this run and ends all waits for it in all processes. Does nothing if the inbox has
  /// another run.
  /// Thread: any.
  void give_up(uint32_t run);

 private:
  friend class InboxReservation;

  std::byte* half(uint32_t number) const;
  void want_swap(uint32_t swaps);
  void swap(uint32_t run, uint32_t swaps);
  Result<InboxBatch> close(uint32_t run, uint32_t number, bool is_last);
  static void signal(std::atomic<uint32_t>& word);

  InboxControl* control_;
  std::function<bool()> is_over_;
};

/// A received message without its padding.
struct InboxMessageView {
  uint32_t storage_id = 0;
  uint32_t records = 0;
  std::span<const std::byte> bytes;
};
/// Removes the first message from `batch` and returns its header and records.
/// Error: code corruption for bytes that are no message, because a process wrote memory that it had
/// not reserved.
/// REQUIRES: `batch` is not empty.
Result<InboxMessageView> take_message(std::span<const std::byte>& batch);

}  // namespace atolldb
