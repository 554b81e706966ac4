// The client's side of a session: many requests in flight to one node, through shared memory.
//
// Maps the session's segment only, no page of the database: whatever happens to the cluster or to
// the client leaves the other whole.
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

#include "shared/error.h"
#include "shared/isolation.h"
#include "shared/session/session_layout.h"
#include "shared/session/session_socket.h"
#include "shared/status.h"

namespace atolldb {

/// What became of a request.
///
///   ok                the transaction has committed
///   unavailable       it was refused and has done nothing: try again later
///   recovering        likewise: until the cluster has recovered, only what has the isolation
///                     snapshot_read_only runs
///   outcome_unknown   the cluster failed while it was in flight: it may have committed or not
///   (R41) all others        it has done nothing
struct SessionReply {
  Status status = Status::outcome_unknown;
  /// durable: what this tells, also of a failure, survives the cluster. precommitted: a failure of
  /// the cluster may undo it.
  AnswerAt answered_at = AnswerAt::durable;
  uint64_t commit_epoch = 0;    // see SessionAnswer
  uint64_t commit_version = 0;  // see SessionAnswer
  uint64_t incarnation = 0;     // of the cluster; another one after a restart
  std::vector<std::byte> output;
  std::string message;
};

/// Names one request of one client; never reused.
using SessionTicket = uint64_t;

struct SessionOptions {
  AnswerAt answer_at = AnswerAt::durable;
  /// Requests of equal affinity run on the same worker; 0: in turn.
  uint64_t affinity = 0;
  /// Ordinal of a worker; it must exist.
  uint32_t worker = kAnyWorker;
  /// None: what the procedure's entry says; `kv.*`: serializable.
  std::optional<Isolation> isolation = std::nullopt;
  /// Id of the snapshot that is to be read; 0: the latest. Only with snapshot_read_only.
  uint32_t snapshot = 0;
  /// With kSessionSlots requests in flight: wait for the end of one, or fail with `unavailable`.
  bool waits_for_room = true;
};

/// Usable by several threads at once.
class SessionClient {
 public:
  /// Runs in the thread that waits, polls, or submits and waits for room; with no lock held, so it
  /// may submit.
  using Callback = std::function<void(SessionTicket, SessionReply)>;
  static constexpr std::chrono::milliseconds kConnectTimeout{10'000};
  static constexpr std::chrono::nanoseconds kForEver{INT64_MAX};

  /// `run_dir`: of the cluster's config. not_running when the node does not serve; resources when
  /// it has kMaxSessionsPerNode sessions.
  static Result<std::unique_ptr<SessionClient>> connect(const std::string& run_dir, uint32_t node);
  /// The same, of a cluster that is being started, perhaps again after a failure
  /// (cluster.restart): tries until the node runs requests, for `patience` at most (then
  /// not_running), or until `gives_up` says so. After the end of a session: what was in flight has
  /// ended as outcome_unknown; a later incarnation has all that was acknowledged as durable.
  /// `isolation`: of the requests that it must run; those that only read a snapshot run before a
  /// recovery has ended.
  static Result<std::unique_ptr<SessionClient>> connect_within(
      const std::string& run_dir, uint32_t node, std::chrono::milliseconds patience,
      const std::function<bool()>& gives_up = {}, Isolation isolation = Isolation::serializable);
  /// Of the cluster of this name, when it uses the default run_dir.
  static Result<std::unique_ptr<SessionClient>> connect_by_name(const std::string& cluster,
                                                                uint32_t node);
  /// Over a connected socket (thread mode, tests).
  static Result<std::unique_ptr<SessionClient>> over(UniqueFd socket);

  SessionClient(const SessionClient&) = delete;
  SessionClient& operator=(const SessionClient&) = delete;
  /// What is in flight goes on; nobody learns its outcome.
  ~SessionClient();

  /// Puts a request in. With a callback: that gets the reply. Without: the ticket's place stays
  /// taken until `wait` or `poll` has fetched the reply.
  /// Errors, with nothing sent: unavailable (no room, or the session has ended), invalid_argument
  /// (name not 1 to 60 bytes), payload_too_long (input longer than kMaxSessionInputBytes).
  std::expected<SessionTicket, Status> submit(std::string_view procedure,
                                              std::span<const std::byte> input,
                                              const SessionOptions& options = {},
                                              Callback callback = {});
  /// The reply, when it is there; outcome_unknown soon after the end of the session.
  /// invalid_argument for a ticket that is not (or, once fetched, no more) under way.
  std::optional<SessionReply> poll(SessionTicket ticket);
  /// Waits for the reply; nothing after the time-out. invalid_argument for a ticket that is not (or
  /// no more) under way.
  std::optional<SessionReply> wait_for(SessionTicket ticket, std::chrono::nanoseconds timeout);
  SessionReply wait(SessionTicket ticket) { return *wait_for(ticket, kForEver); }
  /// submit and wait.
  SessionReply call(std::string_view procedure, std::span<const std::byte> input,
                    const SessionOptions& options = {});

  /// Runs the callbacks of what has arrived; waits for the first arrival, at most that long. The
  /// number of callbacks that ran; 0 at once when no request is in flight.
  size_t dispatch(std::chrono::nanoseconds timeout);

  /// Requests without a reply.
  uint32_t in_flight() const;
  /// False: the node has ended the session or is gone; connect anew (connect_within), and compare
  /// incarnations.
  bool is_open();
  uint64_t incarnation() const { return incarnation_; }
  uint32_t node() const { return segment_->node; }
  /// For tests of clients that break the rules: the segment, and the call that follows a put.
  SessionSegment& segment() { return *segment_; }
  void wake_node();

 private:
  enum class Place : uint8_t { free, in_flight, arrived };
  struct Pending {
    Place place = Place::free;
    bool is_lost = false;  // arrived as outcome_unknown: the segment has no answer
    SessionTicket ticket = 0;
    Callback callback;
  };
  struct Ready {
    Callback callback;
    SessionTicket ticket;
    SessionReply reply;
  };

  SessionClient(UniqueFd socket, UniqueFd wake, SessionSegment* segment);
  void fill(uint32_t slot, std::string_view procedure, std::span<const std::byte> input,
            const SessionOptions& options);
  /// Looks into the ring; moves replies with callbacks to `ready`.
  void collect(std::vector<Ready>& ready);
  void lose_all(std::vector<Ready>& ready);
  SessionReply fetch(uint32_t slot);
  std::optional<SessionReply> try_fetch(SessionTicket ticket, std::vector<Ready>& ready);
  static size_t run(std::vector<Ready>& ready);
  /// Whether the session has ended; then nothing is in flight any more. Cheap: it does not look for
  /// a dead node every time.
  bool notice_end(std::vector<Ready>& ready);
  /// Sleeps until answer_signal is not `seen`; notices the end of the session.
  void sleep(uint32_t seen, std::chrono::steady_clock::time_point until, std::vector<Ready>& ready);
  bool is_closed() const;
  bool has_ended() const;

  UniqueFd socket_;
  UniqueFd wake_;
  SessionSegment* segment_;
  uint64_t incarnation_;

  mutable std::mutex mutex_;
  std::atomic<bool> ended_{false};              // written under mutex_
  std::atomic<uint32_t> waits_{0};              // that gave up without a sleep
  uint32_t requests_tail_ = 0;                  // guarded by mutex_
  uint32_t answers_head_ = 0;                   // guarded by mutex_
  uint64_t next_ = 1;                           // guarded by mutex_
  uint32_t in_flight_ = 0;                      // guarded by mutex_
  std::vector<uint32_t> free_;                  // guarded by mutex_; last in, first out
  std::array<Pending, kSessionSlots> pending_;  // guarded by mutex_
};

}  // namespace atolldb
