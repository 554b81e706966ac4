// A reducer's inbox: how mappers of any process hand it sorted records (foedus.txt section 7.3;
// rule R40). In shared memory, at another address in each process.
//
// Two halves: mappers write to the current one, the reducer works on the other. A mapper reserves
// room by one atomic change of the half's status, copies once, announces. Who finds the current
// half full asks for a swap and waits. The reducer opens the other half, closes the full one, and
// waits for the reservations in it to be announced or declared void; the others go on meanwhile.
//
//   status of a half:  63      40   39    38       27 26            0
//                     [ run 24 ][closed][ writers 12 ][ used, 64 bytes ]
//
// Run numbers (snapshot ids) are not used twice, so a mapper of an older run finds out by the
// compare-and-swap itself. Every wait ends when the run is given up, or when `is_over` says so.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <utility>

#include "engine/mutants.h"
#include "shared/error.h"

namespace atolldb {

/// In front of what a mapper copies: records of one storage, in sort order.
struct alignas(64) InboxMessage {
  uint32_t bytes;    // of records
  uint32_t records;  // 0: declared void, whatever the bytes are
  uint32_t storage_id;
  uint32_t spare[13];
};
static_assert(sizeof(InboxMessage) == 64 && std::is_standard_layout_v<InboxMessage>);

/// The control block; the halves follow it, one after the other.
struct InboxControl {
  uint64_t magic;
  uint64_t half_bytes;
  /// Run number, or with kGivenUp. Writers: the owner, at the start of a run; anybody, to give up.
  alignas(64) std::atomic<uint32_t> run;
  uint32_t mapper_count;  // writer: the owner
  /// Swaps so far; the current half is number (swaps % 2). Writer: the reducer.
  alignas(64) std::atomic<uint32_t> swaps;
  /// What mappers want `swaps` to become at least.
  alignas(64) std::atomic<uint32_t> swaps_wanted;
  /// [ run 32 ][ mappers that have finished 32 ]
  std::atomic<uint64_t> finished;
  /// Changes when mappers have something to look at; for wait_on. And the same for the reducer.
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

/// Room for one message. Destroyed without `announce` it is void (R40): nobody waits for it.
class InboxReservation {
 public:
  InboxReservation(InboxReservation&& other) noexcept
      : inbox_(std::exchange(other.inbox_, nullptr)),
        half_(other.half_),
        message_(other.message_) {}
  InboxReservation& operator=(InboxReservation&&) = delete;
  ~InboxReservation() {
    if (inbox_ != nullptr && !mutant(Mutant::keep_void_reservations)) release(0);
  }

  /// Where the records go.
  std::span<std::byte> bytes() const {
    return {reinterpret_cast<std::byte*>(message_ + 1), message_->bytes};
  }
  /// The copy is complete. `records`: how many, at least 1.
  void announce(uint32_t records) { release(records); }

 private:
  friend class ReducerInbox;
  InboxReservation(ReducerInbox& inbox, uint32_t half, InboxMessage* message)
      : inbox_(&inbox), half_(half), message_(message) {}
  void release(uint32_t records);

  ReducerInbox* inbox_;
  uint32_t half_;
  InboxMessage* message_;
};

/// A half that nobody writes to any more.
struct InboxBatch {
  std::span<const std::byte> bytes;  // messages, one after the other
  bool is_last = false;              // all mappers have finished
};

/// The reducer's side, the mappers', and the owner's: this process's view of one inbox. Mappers may
/// share it; one thread is the reducer.
class ReducerInbox {
 public:
  static constexpr uint64_t kMinHalfBytes = 8192;
  static constexpr uint64_t kMaxHalfBytes = uint64_t{64} << 26;
  static constexpr uint32_t kMaxMappers = 4095;
  static constexpr uint32_t kMaxRun = (uint32_t{1} << 24) - 1;

  /// Bytes of memory for halves of `half_bytes`, rounded up to 64.
  static uint64_t bytes_for(uint64_t half_bytes);
  /// Owner, once. `memory`: aligned to 64; `bytes`: at least bytes_for(kMinHalfBytes).
  static void format(std::byte* memory, uint64_t bytes);

  /// `memory`: formatted. `is_over`: whether every wait is to end, whatever the run (the cluster
  /// has failed or stops); called by whoever waits, at least once a kMaxSleep.
  ReducerInbox(std::byte* memory, std::function<bool()> is_over);

  /// Owner: gets ready for a run of `mapper_count` mappers, before any of them starts. Mappers of
  /// an earlier run are refused from now on; waits until none of them is in the middle of a copy.
  /// REQUIRES: `run` in [1, kMaxRun] was not used before; the reducer of the run before has ended.
  Result<void> begin(uint32_t run, uint32_t mapper_count);

  /// Mapper: room for `bytes` of records, a multiple of 8, at least 8 and at most
  /// max_message_bytes(); waits for a swap if need be. Error (code failed): the run was given up,
  /// or the inbox is at another one.
  Result<InboxReservation> reserve(uint32_t run, uint32_t storage_id, uint32_t bytes);
  uint64_t max_message_bytes() const { return control_->half_bytes - sizeof(InboxMessage); }
  /// Mapper: no more from me in this run. Once, with no reservation open.
  Result<void> finish(uint32_t run);

  /// Reducer: the next full half, or the last one, after which there is none (an error). The one
  /// returned before is the mappers' again.
  Result<InboxBatch> next_batch(uint32_t run);

  /// Anybody: ends all waits for this run, everywhere. Does nothing if the inbox is at another one.
  void give_up(uint32_t run);

 private:
  friend class InboxReservation;

  Result<void> check(uint32_t run) const;
  std::byte* half(uint32_t number) const;
  void want_swap(uint32_t swaps);
  void swap(uint32_t run, uint32_t swaps);
  Result<InboxBatch> close(uint32_t run, uint32_t number, bool is_last);
  static void signal(std::atomic<uint32_t>& word);

  InboxControl* control_;
  std::function<bool()> is_over_;
};

/// Takes the first message off `batch`: its head and its records. REQUIRES: not empty. Code
/// corruption if it is none: somebody has written where he had nothing reserved.
struct InboxMessageView {
  uint32_t storage_id = 0;
  uint32_t records = 0;
  std::span<const std::byte> bytes;
};
Result<InboxMessageView> take_message(std::span<const std::byte>& batch);

}  // namespace atolldb
