// The node's side of one session. It takes requests out of the session's segment and puts answers
// into it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/error.h"
#include "shared/base/unique_fd.h"
#include "shared/memory/epoch_stages.h"
#include "shared/memory/mapped_segment.h"
#include "shared/session/session_layout.h"
#include "shared/session/session_socket.h"
#include "soc/session/request_sink.h"

namespace atolldb {

class SessionServer;

class Session final : public CallOwner {
 public:
  /// The calls between `take` and `answer`.
  struct InFlight {
    uint32_t count = 0;
    const SessionCall* oldest = nullptr;  // null if there is none
  };

  enum class Taken : uint8_t {
    nothing,
    request,  // `take` has stored the slot of the request in `slot`
    part,     // a part of a long input was taken, or the next part of a long output was sent
    invalid,  // like `request`, but `outcome` says why it must not run
    broken,   // the client violated the protocol of the ring, so the session must end
  };

  /// Makes the segment and the eventfd, and sends them to the client.
  static Result<std::unique_ptr<Session>> open(SessionServer& server, UniqueFd socket,
                                               uint32_t node, uint32_t number,
                                               uint64_t incarnation);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override;

  // -- The thread that serves: the session thread, or a worker that helps -----------------------
  Taken take(uint32_t& slot);
  /// Records the time at which `take` has returned this slot, as monotonic_time_ns().
  void record_arrival(uint32_t slot, uint64_t now_ns) {
    call(slot).arrived_ns = now_ns;
    last_arrived_ns_ = now_ns;
  }
  /// The caller may read `procedure` and `arrived_ns` of the oldest call until the next `take`.
  InFlight find_in_flight() const;
  /// Returns the time of the latest request, or 0 if there was none.
  uint64_t last_arrived_ns() const { return last_arrived_ns_; }
  bool has_request() const;
  /// Tells the client to wake the node from now on. Returns true if a request has already arrived,
  /// because the client perhaps does not wake the node for it.
  bool announce_sleep();
  void end_sleep() { segment_->node_sleeps.store(0, std::memory_order_relaxed); }
  /// Returns the slot of the request whose input has not arrived in full.
  std::optional<uint32_t> arriving() const { return arriving_; }
  /// Returns whether the client takes a long output, and so this session must be watched. Relaxed:
  /// the session thread is woken after the first part.
  bool sends_parts() const { return sending_count_.load(std::memory_order_relaxed) != 0; }
  /// Returns whether the client has not asked for the next part of an output since this time. A
  /// question in the ring counts, although the node has not read it yet: the node may have been
  /// stopped, or `held` delays it.
  bool is_stalled(uint64_t since_ns) const;
  /// Ends the calls whose outputs the client has not taken in full, and those to come. REQUIRES:
  /// the session has no client any more.
  void drop_outputs();
  /// Marks the session as closed, so that the client waits for no more answers. Wakes sleeping
  /// threads of the client, which then read the state.
  void close();

  // -- Any thread -------------------------------------------------------------------------------
  SessionCall& call(uint32_t slot) {
    DCHECK(slot < kSessionSlots);
    return calls_[slot];
  }
  /// Answers with the call's outcome, or with the first part of a long output. The session may be
  /// freed before this function returns. REQUIRES: `take` has returned this slot, and the call is
  /// not answered yet.
  void answer(uint32_t slot);
  void leave_queue() override;
  void finish(SessionCall& call) override { answer(static_cast<uint32_t>(&call - calls_.data())); }
  /// Returns the number of calls between `take` and the end of `answer`. seq_cst: pairs with
  /// SessionServer::signal_end.
  uint32_t in_flight() const { return in_flight_.load(std::memory_order_seq_cst); }

  /// Returns the number of requests that were answered.
  uint64_t answered() const {
    const std::lock_guard guard(answers_mutex_);
    return answered_;
  }

  SessionServer& server() const { return server_; }
  int socket() const { return socket_.get(); }
  int wake() const { return wake_.get(); }
  uint32_t number() const { return number_; }
  const SessionPeer& peer() const { return peer_; }
  uint64_t opened_ns() const { return opened_ns_; }

  /// Slot of a call that waits for room in its worker's queue. Used by the thread that serves.
  std::optional<uint32_t> held;

 private:
  Session(SessionServer& server, UniqueFd socket, UniqueFd wake, MappedSegment memory,
          uint32_t number);
  /// Validates the copy of a request (R41), and copies the first part of its input.
  Taken accept(SessionCall& call, const SessionRequest& request, SessionSlot& shared) const;
  /// Prepares the call for the other parts of its input, which are in the ring.
  Taken begin_parts(SessionCall& call, uint32_t slot, const SessionRequest& request);
  /// Copies some of these parts.
  Taken take_parts(uint32_t& slot);
  /// Returns whether the ring has the client's question for the next part of this slot's output.
  bool has_asked(uint32_t slot) const;
  /// Writes the next part of a long output, which the client has asked for.
  void send_part(uint32_t slot);
  /// Puts a slot into the ring of answers. After the last part of the output the call has ended.
  void put_answer(uint32_t slot);
  /// Frees the buffers of a call that ends. The allocator returns long ones by a system call,
  /// perhaps on a worker: only calls with long inputs or outputs pay for it.
  static void free_buffers(SessionCall& call);
  /// Removes the call from `sending_`. REQUIRES: answers_mutex_ is held.
  void end_sending(SessionCall& call, uint32_t slot);
  Taken refuse(SessionCall& call, std::string why) const;
  void wake_client();

  SessionServer& server_;
  UniqueFd socket_;
  UniqueFd wake_;
  MappedSegment memory_;
  SessionSegment* segment_;  // in memory_; untrusted, because the client can write all of it
  const uint32_t number_;
  /// The client's process. It is read when the session opens: later, another process may have its
  /// id.
  const SessionPeer peer_;
  const uint64_t opened_ns_ = monotonic_time_ns();
  uint64_t incarnation_ = 0;
  uint32_t requests_head_ = 0;        // used only by the thread that serves
  std::optional<uint32_t> arriving_;  // used only by the thread that serves
  uint64_t last_arrived_ns_ = 0;      // used only by the thread that serves
  mutable std::mutex answers_mutex_;
  uint64_t answered_ = 0;  // guarded by answers_mutex_; answers without the parts before the last
  uint32_t answers_tail_ = 0;  // guarded by answers_mutex_; position in the ring
  bool is_dropped_ = false;    // guarded by answers_mutex_; no client takes the parts of outputs
  std::vector<uint32_t> sending_;  // guarded by answers_mutex_; slots of outputs with more parts
  std::atomic<uint32_t> sending_count_{0};  // size of sending_; written under answers_mutex_
  std::atomic<uint32_t> in_flight_{0};
  std::array<SessionCall, kSessionSlots> calls_;
};

}  // namespace atolldb
