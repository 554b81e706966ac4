// Client side of a session: many requests in flight to one node, through shared memory.
//
// The client maps only the session's segment, and no page of the database. A failure of the cluster
// or of the client therefore cannot damage the other side.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/isolation.h"
#include "shared/base/status.h"
#include "shared/base/unique_fd.h"
#include "shared/client/client_transport.h"
#include "shared/memory/mapped_segment.h"
#include "shared/session/session_layout.h"

namespace atolldb {

/// One session with one node. It has no thread of its own: callbacks run in the threads that call
/// it. Thread: any; several may call at once.
class SessionClient final : public ClientTransport {
 public:
  static constexpr std::chrono::milliseconds kConnectTimeout{10'000};

  /// `run_dir`: cluster.run_dir of the config. `node`: 0 to its number of nodes - 1. Waits at most
  /// kConnectTimeout for the node.
  ///
  /// Errors: not_running if the node does not serve; config if the path of the socket is too long;
  /// resources if the node has kMaxSessionsPerNode sessions, or a limit of this process is reached;
  /// failed if another user owns the socket, or the node has another layout version.
  static Result<std::unique_ptr<SessionClient>> connect(const std::string& run_dir, uint32_t node);
  /// Does the same as `connect`, for a cluster that is starting, perhaps after a failure
  /// (cluster.restart). Tries until the node runs requests. Returns not_running after `patience`,
  /// or if `gives_up` returns true. `isolation`: isolation level of the requests that must run.
  /// Those with snapshot_read_only already run during a recovery.
  ///
  /// After the end of a session, its requests in flight have ended as outcome_unknown. A later
  /// incarnation has every commit that was acknowledged as durable.
  static Result<std::unique_ptr<SessionClient>> connect_within(
      const std::string& run_dir, uint32_t node, std::chrono::milliseconds patience,
      const std::function<bool()>& gives_up = {}, Isolation isolation = Isolation::serializable);
  /// Does the same as `connect`, for the cluster of this name. REQUIRES: the cluster uses the
  /// default run_dir.
  static Result<std::unique_ptr<SessionClient>> connect_by_name(const std::string& cluster,
                                                                uint32_t node);
  /// Does the same as `connect`, over a connected socket (thread mode, tests).
  static Result<std::unique_ptr<SessionClient>> over(UniqueFd socket);

  /// In a child process (fork) the session is closed; the parent continues to use it.
  ~SessionClient() override;

  std::optional<SessionReply> wait_for(SessionTicket ticket,
                                       std::chrono::nanoseconds timeout) override;
  size_t dispatch(std::chrono::nanoseconds timeout) override;
  uint32_t in_flight() const override;
  bool is_open() override;
  uint64_t incarnation() const override { return incarnation_; }
  uint32_t node() const override { return segment_->node; }
  uint32_t max_input_bytes() const override { return max_input_bytes_; }
  /// Tests of clients that violate the protocol use these two functions. A caller that puts a
  /// request into the ring of the segment calls `wake_node` afterwards.
  SessionSegment& segment() { return *segment_; }
  void wake_node();

 private:
  /// `part`: the slot holds a part of the input of another slot's request.
  enum class Place : uint8_t { free, in_flight, arrived, part };
  struct LongPayload {
    std::vector<uint32_t> parts;    // slots of the other parts of a long input
    std::vector<std::byte> output;  // parts of a long output that have arrived
  };
  struct Pending {
    Place place = Place::free;
    bool is_lost = false;  // the request ended as outcome_unknown, without an answer
    SessionTicket ticket = 0;
    Callback callback;
    std::unique_ptr<LongPayload> longer;  // null: input and output have one part each
  };
  struct Ready {
    Callback callback;
    SessionTicket ticket;
    SessionReply reply;
  };

  SessionClient(UniqueFd socket, UniqueFd wake, MappedSegment memory);
  std::expected<SessionTicket, Status> submit_checked(std::string_view procedure,
                                                      std::span<const std::byte> input,
                                                      const SessionOptions& options,
                                                      Callback callback) override;
  /// Puts a request into free slots. REQUIRES: mutex_ is held; there are enough free slots.
  SessionTicket place(std::string_view procedure, std::span<const std::byte> input,
                      const SessionOptions& options, Callback callback);
  void fill(uint32_t slot, std::string_view procedure, std::span<const std::byte> input,
            const SessionOptions& options);
  /// Returns a free slot, which is free no more. REQUIRES: mutex_ is held.
  uint32_t take_free_slot();
  /// Copies the part of a long output out of the slot. If it was not the last one, asks the node
  /// for the next one, and returns true. REQUIRES: mutex_ is held.
  bool take_part(uint32_t slot);
  /// Ends a request in flight. REQUIRES: mutex_ is held.
  void arrive(uint32_t slot, std::vector<Ready>& ready);
  /// Reads the answer ring. Moves replies with callbacks to `ready`. REQUIRES: mutex_ is held.
  void collect(std::vector<Ready>& ready);
  /// Ends all requests in flight as outcome_unknown. REQUIRES: mutex_ is held.
  void lose_all(std::vector<Ready>& ready);
  /// Copies the answer out, and frees the slot. REQUIRES: mutex_ is held; the answer has arrived.
  SessionReply fetch(uint32_t slot);
  std::optional<SessionReply> try_fetch(SessionTicket ticket, std::vector<Ready>& ready);
  /// Runs the callbacks. Returns their number. REQUIRES: mutex_ is not held.
  static size_t run(std::vector<Ready>& ready);
  /// Returns whether the session has ended; then no request is in flight. Cheap: it does not check
  /// for a dead node every time.
  bool notice_end(std::vector<Ready>& ready);
  /// Sleeps until answer_signal is not `seen`. Detects the end of the session.
  void sleep(uint32_t seen, std::chrono::steady_clock::time_point until, std::vector<Ready>& ready);
  bool is_closed() const;
  bool has_ended() const;
  /// Returns false in a child process of the one that has opened the session.
  bool is_own() const;

  UniqueFd socket_;
  UniqueFd wake_;
  MappedSegment memory_;
  SessionSegment* segment_;  // points into memory_
  uint64_t incarnation_;
  uint32_t max_input_bytes_;
  uint32_t max_output_bytes_;
  uint32_t forks_;  // fork_count() of the process of the session

  mutable std::mutex mutex_;
  std::atomic<bool> ended_{false};              // written under mutex_
  std::atomic<uint32_t> waits_{0};              // number of waits that have expired
  uint32_t requests_tail_ = 0;                  // guarded by mutex_
  uint32_t answers_head_ = 0;                   // guarded by mutex_
  uint64_t next_ = 1;                           // guarded by mutex_
  uint32_t in_flight_ = 0;                      // guarded by mutex_
  std::vector<uint32_t> free_;                  // guarded by mutex_; last in, first out
  std::array<Pending, kSessionSlots> pending_;  // guarded by mutex_
};

}  // namespace atolldb
