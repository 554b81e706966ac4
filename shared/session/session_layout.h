// Layout of a session's segment: requests of one client to one node, and the answers.
//
//   [ SessionSegment: header, words, two rings of slot numbers | kSessionSlots slots ]
//
// A request lives in a slot. The client fills a free slot and puts its number into the request
// ring; the node copies the request out (R41), runs it, writes the answer into the same slot and
// puts the number into the answer ring; the client copies the answer out, and the slot is free
// again. So an answer always has a place, and the node never waits for a client.
//
// The node believes nothing that a client can write: it keeps the numbers of what it has read and
// of what is in flight in its own memory, and reads of the segment no index and no length that it
// does not check. The file is sealed: a client cannot shrink it under the node.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/memory/segment_header.h"
#include "shared/status.h"

namespace atolldb {

inline constexpr uint32_t kSessionLayoutVersion = 2;
/// Requests of one session that are in flight at the same time. A power of two.
inline constexpr uint32_t kSessionSlots = 256;
inline constexpr uint32_t kMaxSessionInputBytes = 64u << 10;
inline constexpr uint32_t kMaxSessionOutputBytes = 64u << 10;
inline constexpr uint32_t kMaxSessionMessageBytes = 240;
inline constexpr uint32_t kMaxSessionProcedureName = 60;
/// Sessions of one node at the same time: those included whose client is gone and whose last
/// request runs. Each costs some 17 MiB of addresses, and of memory what its requests have touched.
inline constexpr uint32_t kMaxSessionsPerNode = 64;

/// SessionRequest::worker: any, by `affinity` when that is not 0, else in turn.
inline constexpr uint32_t kAnyWorker = ~uint32_t{0};

/// When a request is answered.
enum class AnswerAt : uint32_t {
  durable = 0,       // its transaction, and all it has read, survives a failure
  precommitted = 1,  // as soon as it has committed in memory: a failure may lose it
};

/// Writer: the client. The input follows in the slot.
struct SessionRequest {
  uint64_t id;        // the client's; comes back with the answer
  uint64_t affinity;  // requests of equal affinity run on the same worker; 0: none
  uint32_t worker;    // ordinal, or kAnyWorker
  AnswerAt answer_at;
  uint32_t input_bytes;
  uint32_t name_bytes;
  std::array<char, kMaxSessionProcedureName + 4> name;  // of the procedure; not terminated
  uint32_t snapshot;                                    // see TransactionMode
  uint8_t isolation;  // 1 + Isolation; 0: what the procedure's entry says
  std::array<uint8_t, 3> spare;
};
static_assert(sizeof(SessionRequest) == 104);

/// Writer: the node. The output follows in the slot.
struct SessionAnswer {
  uint64_t id;
  /// The epoch that had to be durable: of the commit, or of what was read (R19).
  uint64_t commit_epoch;
  /// VID (epoch and ordinal) of what a committed transaction wrote; 0 when it wrote nothing.
  uint64_t commit_version;
  uint64_t incarnation;
  uint32_t output_bytes;
  uint32_t message_bytes;
  AnswerAt answered_at;
  Status status;
  std::array<uint8_t, 3> spare;
  std::array<char, kMaxSessionMessageBytes> message;  // why it failed, when there is more to say
};
static_assert(sizeof(SessionAnswer) == 288);

/// Slots are as many cache lines apart as is odd: their heads do not fall into the same cache sets.
struct SessionSlot {
  static constexpr size_t kDataBytes = 64u << 10;
  alignas(64) SessionRequest request;
  alignas(64) SessionAnswer answer;
  /// Of the request, then of the answer: the node has copied the input when it writes the output.
  alignas(64) std::array<std::byte, kDataBytes> data;
};
static_assert(SessionSlot::kDataBytes >= kMaxSessionInputBytes &&
              SessionSlot::kDataBytes >= kMaxSessionOutputBytes);
static_assert(sizeof(SessionSlot) == 128 + 320 + SessionSlot::kDataBytes);
static_assert(sizeof(SessionSlot) / 64 % 2 == 1);

/// Numbers of slots from one side to the other. There are at most kSessionSlots under way, so a
/// ring is never full for a client that keeps the rules.
struct SlotRing {
  /// Numbers ever put in. Release by its writer after the entry; the reader's acquire pairs.
  alignas(64) std::atomic<uint32_t> tail;
  alignas(64) std::array<std::atomic<uint32_t>, kSessionSlots> entries;

  void put(uint32_t at, uint32_t slot) {
    entries[at % kSessionSlots].store(slot, std::memory_order_relaxed);
    tail.store(at + 1, std::memory_order_release);
  }
};
static_assert(sizeof(SlotRing) == 64 + kSessionSlots * 4);

enum class SessionState : uint32_t { open = 0, closed = 1 };

struct SessionSegment {
  SegmentHeader header;
  uint64_t incarnation;
  uint32_t session_layout_version;
  uint32_t node;
  uint32_t session;  // the node's number for it
  /// closed: the node answers no more. Release pairs with the client's acquire: all its answers are
  /// in the ring.
  std::atomic<uint32_t> state;
  /// 1: the node's session thread sleeps, or is about to. Whoever exchanges it for 0 after having
  /// put a request in writes to the session's eventfd.
  alignas(64) std::atomic<uint32_t> node_sleeps;
  /// Clients' threads that sleep on `answer_signal`, or are about to.
  alignas(64) std::atomic<uint32_t> sleepers;
  /// Changes after every put into `answers`; sleepers wait on it.
  alignas(64) std::atomic<uint32_t> answer_signal;
  SlotRing requests;  // writer: the client
  SlotRing answers;   // writer: the node
  alignas(64) std::array<SessionSlot, kSessionSlots> slots;
};
static_assert(sizeof(SessionSegment) % 64 == 0);

/// The segment's file: whole pages.
inline constexpr uint64_t kSessionSegmentBytes =
    (sizeof(SessionSegment) + 4095) / 4096 * uint64_t{4096};

}  // namespace atolldb
