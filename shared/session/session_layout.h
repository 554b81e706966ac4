// Layout of a session's segment: requests of one client to one node, and the answers.
//
//   [ SessionSegment: header, words, two rings of slot numbers | kSessionSlots slots ]
//
// Protocol of a request:
// 1. The client fills a free slot, and puts its number into the request ring.
// 2. The node copies the request out (R41), runs it, and writes the answer into the same slot.
// 3. The node puts the slot number into the answer ring.
// 4. The client copies the answer out, and the slot is free again.
//
// An answer therefore always has a place, and the node never waits for a client.
//
// A slot holds one part of an input or an output: 64 KiB. A longer input fills the slots of the
// next entries of the request ring, which the client puts in at once. They are free when the
// request is answered. A longer output has several parts. After each part but the last, the client
// puts the slot into the request ring again, and the node answers with the next part in the same
// slot.
//
// The node trusts no data that a client can write. It keeps the ring positions and the requests in
// flight in its own memory. It checks every index and length that it reads from the segment. The
// file is sealed: a client cannot shrink it while the node uses it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/base/limits.h"
#include "shared/base/status.h"
#include "shared/memory/segment_header.h"

namespace atolldb {

inline constexpr uint32_t kSessionLayoutVersion = 4;
/// Maximum number of requests in flight per session. A power of two. A client gets
/// at most this many durable answers per epoch: 410 thousand/s with epochs of 10 ms.
inline constexpr uint32_t kSessionSlots = 4096;
inline constexpr uint32_t kMaxSessionMessageBytes = 240;
inline constexpr uint32_t kMaxSessionProcedureName = 60;
/// Maximum number of sessions per node. A session counts until its last request has ended, even if
/// its client has gone. Each session reserves about 258 MiB of address space, but uses only the
/// memory that its requests touch.
inline constexpr uint32_t kMaxSessionsPerNode = 64;

/// Value of SessionRequest::worker if the node shall choose the worker. The node uses `affinity` if
/// it is not 0, and else round robin.
inline constexpr uint32_t kAnyWorker = ~uint32_t{0};

/// Returns the number of parts of an input or an output; at least 1.
constexpr uint32_t session_parts(uint64_t bytes) {
  return bytes <= kSessionPartBytes
             ? 1
             : static_cast<uint32_t>((bytes + kSessionPartBytes - 1) / kSessionPartBytes);
}
static_assert(session_parts(kMaxSessionInputBytes) <= kSessionSlots / 2);

/// Condition for the answer to a request.
enum class AnswerAt : uint32_t {
  durable = 0,       // its transaction, and all data that it read, survive a failure
  precommitted = 1,  // its transaction has committed in memory; a failure may lose it
};

/// Writer: the client. The first part of the input follows in the slot.
struct SessionRequest {
  uint64_t id;        // chosen by the client; returned with the answer
  uint64_t affinity;  // requests with equal values run on the same worker; 0: no affinity
  uint32_t worker;    // ordinal of the worker, or kAnyWorker
  AnswerAt answer_at;
  uint32_t input_bytes;  // of all parts
  uint32_t name_bytes;
  std::array<char, kMaxSessionProcedureName + 4> name;  // name of the procedure; not terminated
  uint32_t snapshot;                                    // id of the snapshot to read; 0: the latest
  uint8_t isolation;  // 1 + Isolation; 0: that of the procedure's entry
  std::array<uint8_t, 3> spare;
};
static_assert(sizeof(SessionRequest) == 104);

/// Writer: the node, before the first part of the output, which follows in the slot.
struct SessionAnswer {
  uint64_t id;
  /// Epoch of the commit; without writes, the latest epoch that the transaction depends on (R19). A
  /// durable answer is sent when this epoch is durable.
  uint64_t commit_epoch;
  /// VID (epoch and ordinal) of a committed transaction's writes; 0 if it wrote nothing.
  uint64_t commit_version;
  uint64_t incarnation;
  uint32_t output_bytes;  // of all parts
  uint32_t message_bytes;
  AnswerAt answered_at;
  Status status;
  std::array<uint8_t, 3> spare;
  std::array<char, kMaxSessionMessageBytes>
      message;  // reason of a failure, if `status` alone does not say it
};
static_assert(sizeof(SessionAnswer) == 288);

/// One slot of a session. Its size is an odd number of cache lines, so that the heads of the slots
/// fall into different cache sets.
struct SessionSlot {
  static constexpr size_t kDataBytes = kSessionPartBytes;
  alignas(64) SessionRequest request;
  alignas(64) SessionAnswer answer;
  /// A part of an input, then a part of the output. The node has copied the input before it writes
  /// the output.
  alignas(64) std::array<std::byte, kDataBytes> data;
};
static_assert(sizeof(SessionSlot) == 128 + 320 + SessionSlot::kDataBytes);
static_assert(sizeof(SessionSlot) / 64 % 2 == 1);

/// Ring of slot numbers from one side to the other. At most kSessionSlots are in flight, so the
/// ring is never full unless a client violates the protocol.
struct SlotRing {
  /// Number of entries ever put in. The writer stores it with release, after the entry. The reader
  /// loads it with acquire.
  alignas(64) std::atomic<uint32_t> tail;
  alignas(64) std::array<std::atomic<uint32_t>, kSessionSlots> entries;

  void put(uint32_t at, uint32_t slot) {
    entries[at % kSessionSlots].store(slot, std::memory_order_relaxed);
    tail.store(at + 1, std::memory_order_release);
  }
  /// Puts several slots in at once: the reader sees all of them, or none.
  void put_all(uint32_t at, std::span<const uint32_t> slots) {
    for (size_t i = 0; i < slots.size(); ++i) {
      entries[(at + i) % kSessionSlots].store(slots[i], std::memory_order_relaxed);
    }
    tail.store(at + static_cast<uint32_t>(slots.size()), std::memory_order_release);
  }
};
static_assert(sizeof(SlotRing) == 64 + kSessionSlots * 4);

enum class SessionState : uint32_t { open = 0, closed = 1 };

struct SessionSegment {
  SegmentHeader header;
  uint64_t incarnation;
  uint32_t session_layout_version;
  uint32_t node;
  uint32_t session;          // number that the node gave the session
  uint32_t max_input_bytes;  // limits of the cluster, for this session
  uint32_t max_output_bytes;
  /// A SessionState. `closed`: the node sends no more answers. Release pairs with the client's
  /// acquire: all answers are in the ring.
  std::atomic<uint32_t> state;
  /// 1: the node's session thread sleeps, or is about to sleep. A client thread that has put a
  /// request into the ring exchanges this word for 0. The thread that gets the 1 writes to the
  /// session's eventfd.
  alignas(64) std::atomic<uint32_t> node_sleeps;
  /// Number of client threads that sleep on `answer_signal`, or are about to.
  alignas(64) std::atomic<uint32_t> sleepers;
  /// Changes after every put into `answers`. Sleepers wait on it.
  alignas(64) std::atomic<uint32_t> answer_signal;
  SlotRing requests;  // writer: the client
  SlotRing answers;   // writer: the node
  alignas(64) std::array<SessionSlot, kSessionSlots> slots;
};
static_assert(sizeof(SessionSegment) % 64 == 0);

/// Size of the segment's file: whole pages.
inline constexpr uint64_t kSessionSegmentBytes =
    (sizeof(SessionSegment) + 4095) / 4096 * uint64_t{4096};

}  // namespace atolldb
