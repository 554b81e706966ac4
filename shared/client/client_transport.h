// Requests of one client to one node, whatever carries them: shared memory (SessionClient) or the
// network (NetworkClient).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shared/base/error.h"
#include "shared/base/isolation.h"
#include "shared/base/status.h"
#include "shared/session/session_layout.h"

namespace atolldb {

/// Result of a request.
///
///   ok                the transaction has committed
///   unavailable       rejected without any effect: try again later
///   recovering        rejected without any effect: until the cluster has recovered, only
///                     requests with isolation snapshot_read_only run
///   outcome_unknown   the cluster failed, or the node ended the session, meanwhile: the request
///                     may have committed (R41)
///   all others        the request had no effect
struct SessionReply {
  Status status = Status::outcome_unknown;
  /// durable: a failure of the cluster cannot undo the result, whether it is ok or an error.
  /// precommitted: a failure of the cluster may undo it.
  AnswerAt answered_at = AnswerAt::durable;
  /// Epoch of the commit; without writes, the latest epoch that the transaction depends on. A
  /// durable answer is sent when this epoch is durable.
  uint64_t commit_epoch = 0;
  /// VID (epoch and ordinal) of the transaction's writes; 0 if it wrote nothing.
  uint64_t commit_version = 0;
  /// Incarnation of the cluster; changes with every restart.
  uint64_t incarnation = 0;
  /// Output of the procedure, at most procedures.max_output. The procedure defines its format.
  /// `read_kv_reply` decodes the output of `kv.*`.
  std::vector<std::byte> output;
  /// Reason of a failure if there is more to say than `status`, at most kMaxSessionMessageBytes.
  std::string message;
};

/// Names one request of one client. Never 0, and never reused.
using SessionTicket = uint64_t;

struct SessionOptions {
  AnswerAt answer_at = AnswerAt::durable;
  /// Requests of equal affinity run on the same worker. 0: round robin.
  uint64_t affinity = 0;
  /// Ordinal of an existing worker, or kAnyWorker.
  uint32_t worker = kAnyWorker;
  /// Without a value, the procedure's entry decides; `kv.*` uses serializable.
  std::optional<Isolation> isolation = std::nullopt;
  /// Id of the snapshot to read; 0: the latest. Only with snapshot_read_only.
  uint32_t snapshot = 0;
  /// The node does not begin the request later than so many milliseconds after its arrival. It then
  /// answers deadline_exceeded, and the request had no effect. 0: no limit. Local sessions ignore
  /// it, because there the wait for a worker is the only delay.
  uint32_t start_within_ms = 0;
  /// True: a submission without a free slot waits until a request in flight ends. False: it fails
  /// with `unavailable`.
  bool waits_for_room = true;
  /// The submission does not wake the node. The wait wakes it if no reply has arrived after 50
  /// checks. REQUIRES: the caller calls `wait` or `wait_for` next.
  bool waits_at_once = false;
};

/// Thread: any; several may call at once. Callbacks run in the threads that call these functions.
class ClientTransport {
 public:
  /// Gets the reply of a request. Runs in a thread that calls `submit`, `poll`, `wait`, `wait_for`,
  /// `call` or `dispatch`. It runs without a lock held, so it may submit.
  using Callback = std::function<void(SessionTicket, SessionReply)>;
  static constexpr std::chrono::nanoseconds kForEver{INT64_MAX};

  ClientTransport() = default;
  ClientTransport(const ClientTransport&) = delete;
  ClientTransport& operator=(const ClientTransport&) = delete;
  /// Requests in flight continue on the node, but this client does not get their replies. REQUIRES:
  /// no other thread uses the client.
  virtual ~ClientTransport() = default;

  /// Submits a request: `procedure` is a name of 1 to kMaxSessionProcedureName bytes, `input` has
  /// at most max_input_bytes(). Both are copied. A callback, if given, gets the reply. Without
  /// a callback, the slot stays taken until `wait`, `wait_for` or `poll` has fetched the reply. May
  /// block: see SessionOptions::waits_for_room.
  ///
  /// Errors, without sending: unavailable (no free slot, or the session has ended),
  /// invalid_argument (length of the name), payload_too_long (length of the input).
  std::expected<SessionTicket, Status> submit(std::string_view procedure,
                                              std::span<const std::byte> input,
                                              const SessionOptions& options = {},
                                              Callback callback = {}) {
    if (procedure.empty() || procedure.size() > kMaxSessionProcedureName) {
      return std::unexpected(Status::invalid_argument);
    }
    if (input.size() > max_input_bytes()) return std::unexpected(Status::payload_too_long);
    return submit_checked(procedure, input, options, std::move(callback));
  }
  /// Waits for the reply. Returns nothing after the timeout, or invalid_argument for a ticket that
  /// is not in flight or was fetched already. Soon after the end of the session, a missing reply is
  /// replaced by outcome_unknown.
  virtual std::optional<SessionReply> wait_for(SessionTicket ticket,
                                               std::chrono::nanoseconds timeout) = 0;
  /// Returns the reply, or nothing if it has not arrived.
  std::optional<SessionReply> poll(SessionTicket ticket);
  SessionReply wait(SessionTicket ticket);
  /// Submits and waits. An error of `submit` is the status of the reply.
  SessionReply call(std::string_view procedure, std::span<const std::byte> input,
                    const SessionOptions& options = {});

  /// Runs the callbacks of all replies that have arrived. Waits for the first reply at most
  /// `timeout`. Returns the number of callbacks that ran; 0 at once if no request is in flight.
  virtual size_t dispatch(std::chrono::nanoseconds timeout) = 0;

  /// Returns the number of requests without a reply.
  virtual uint32_t in_flight() const = 0;
  /// Returns false if the session has ended. The caller then connects again, and compares
  /// incarnations.
  virtual bool is_open() = 0;
  virtual uint64_t incarnation() const = 0;
  /// Returns whether the client may start jobs.
  virtual bool may_run_jobs() const { return true; }
  virtual uint32_t node() const = 0;
  /// Returns the limit of an input: procedures.max_input of the cluster.
  virtual uint32_t max_input_bytes() const = 0;

 protected:
  /// The same as `submit`. REQUIRES: the lengths of both arguments are within their limits.
  virtual std::expected<SessionTicket, Status> submit_checked(std::string_view procedure,
                                                              std::span<const std::byte> input,
                                                              const SessionOptions& options,
                                                              Callback callback) = 0;
};

/// Calls `connect` until the node runs requests, at most for `patience`. `connect`: returns a
/// transport, or not_running if another attempt may succeed. `what`: names the node in errors. See
/// SessionClient::connect_within.
Result<std::unique_ptr<ClientTransport>> connect_until_running(
    const std::function<Result<std::unique_ptr<ClientTransport>>()>& connect,
    std::chrono::milliseconds patience, const std::function<bool()>& gives_up, Isolation isolation,
    const std::string& what);

}  // namespace atolldb
