// The way of a client's request through the node, from its session to a worker and back. Local
// sessions (SessionServer) and network sessions (soc/network) use the same one.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "shared/memory/worker_metrics.h"
#include "shared/metrics/procedure_metrics.h"
#include "shared/session/session_layout.h"
#include "soc/procedure/execute.h"
#include "soc/procedure/payload_memory.h"
#include "soc/procedure/registry.h"
#include "soc/session/durable_answers.h"
#include "soc/worker/worker.h"

namespace atolldb {

struct SessionCall;

/// The session of a call. Thread: the call's worker, or that of the durable answers.
class CallOwner {
 public:
  virtual ~CallOwner() = default;
  /// The call has left the queue of its worker, so there is room for another one.
  virtual void leave_queue() = 0;
  /// The outcome is in the call, and may be sent. The call may be used again before this returns.
  virtual void finish(SessionCall& call) = 0;
};

/// A request in the node's own memory. The thread of its session writes it first, then the worker
/// that runs it, then the thread that answers.
struct SessionCall {
  std::atomic<bool> in_flight{false};
  uint64_t id = 0;
  uint64_t affinity = 0;
  uint32_t worker = kAnyWorker;
  AnswerAt answer_at = AnswerAt::durable;
  uint8_t isolation = 0;  // 1 + Isolation; 0: that of the procedure's entry
  TransactionMode mode;   // the resulting mode of the transaction
  std::string procedure;  // written only by the session's thread, like arrived_ns
  std::vector<std::byte> input;
  RegisteredProcedure registered;  // the procedure of this name
  uint64_t arrived_ns = 0;         // when its session has taken it, as monotonic_time_ns()
  uint64_t start_before_ns = 0;    // it must not begin later; 0: no limit
  uint64_t deadline_epoch = 0;
  ProcedureOutcome outcome;
  CallOwner* owner = nullptr;                     // set by RequestSink::submit
  uint32_t input_bytes = 0;                       // of a long input, which arrives in several parts
  PayloadMemory::Share input_memory;              // of a long input
  uint32_t max_output_bytes = kSessionPartBytes;  // limit of this client; set by its session
  /// The client has got the first part of the output, and takes the others.
  std::atomic<bool> sends_parts{false};
  size_t sent_bytes = 0;     // of the output, in the parts so far
  uint64_t progress_ns = 0;  // when the latest part of the input or the output was put on its way
};

/// Frees a long input, whose memory counts in PayloadMemory. REQUIRES: the call has run.
void free_long_input(SessionCall& call);

/// Limits of inputs and outputs, of all sessions of a node.
struct PayloadLimits {
  uint32_t max_input_bytes = 64u << 20;
  uint32_t max_output_bytes = 64u << 20;
  uint64_t memory_bytes = 256u << 20;  // of all those together that are longer than one part
  /// A client that neither sends nor takes the next part for so long loses its session.
  std::chrono::milliseconds transfer_timeout{60'000};

  /// Returns the cut-off of stalled sessions: those whose latest part was put on its way before
  /// it. Times are those of monotonic_time_ns().
  uint64_t stalled_before_ns(uint64_t now_ns) const {
    const std::chrono::nanoseconds timeout = transfer_timeout;
    const auto timeout_ns = static_cast<uint64_t>(timeout.count());
    return now_ns <= timeout_ns ? 0 : now_ns - timeout_ns;
  }
};

/// Reason why a request is not run.
struct Refusal {
  Status status = Status::unavailable;  // unavailable or recovering: a later retry is safe
  std::string why;
};

/// Checks `start_before_ns`. If that time has passed, stores deadline_exceeded as the outcome of
/// the call, and returns true: the call must not begin.
bool refuse_if_late(SessionCall& call);

/// Parts of the node that its sessions use. REQUIRES: they outlive the sessions.
struct SessionServices {
  uint32_t node = 0;
  uint64_t incarnation = 0;
  const ProcedureRegistry* procedures = nullptr;
  std::vector<Worker*> workers;
  DurableAnswers* answers = nullptr;
  SessionMetrics* metrics = nullptr;
  ProcedureMetrics* procedure_metrics = nullptr;  // null: calls are not counted
  /// Returns the reason why requests of this isolation cannot run now, or nothing if they can.
  std::function<std::optional<Refusal>(Isolation)> refusal;
  /// Returns the epoch at which a procedure that begins now exceeds its time limit.
  std::function<uint64_t()> deadline_epoch;
  PayloadLimits payloads;
};

/// Thread: any thread of a session server.
class RequestSink {
 public:
  /// Limit of the calls that wait for one worker. It is at least two full sessions.
  static constexpr uint32_t kMaxQueuedPerWorker = 8192;
  static_assert(kMaxQueuedPerWorker >= 2 * kSessionSlots);
  /// Maximum number of calls that a worker runs before its other tasks get their turn.
  static constexpr uint32_t kCallsPerTask = 256;

  enum class Submitted : uint8_t {
    yes,
    full,  // the queue of the call's worker is full: try again when another call has left it
    no,    // the worker has ended, and `refuse` was called
  };

  explicit RequestSink(SessionServices services);

  /// Looks up the procedure, and chooses the isolation and the worker. Returns the reason why the
  /// request must not run, or nothing if it may. `idle_worker`: runs the call unless the call names
  /// another worker; kAnyWorker: none is known.
  std::optional<Refusal> admit(SessionCall& call, uint32_t idle_worker = kAnyWorker);
  /// Gives an admitted call to its worker. `owner` gets the outcome, perhaps before this returns.
  Submitted submit(SessionCall& call, CallOwner& owner);
  /// Stores and counts the outcome of a request that does not run.
  void refuse(SessionCall& call, Refusal refusal) const;
  /// Takes memory for an input that is longer than one part. Returns the reason why the request
  /// must not run, or nothing.
  std::optional<Refusal> take_input_memory(SessionCall& call, uint32_t input_bytes);
  /// The same for an input whose parts arrive one after another. Takes nothing yet: a client that
  /// only announces inputs must not keep the memory from others.
  std::optional<Refusal> expect_input(SessionCall& call, uint32_t input_bytes);
  /// Takes memory for the next part of such an input.
  std::optional<Refusal> grow_input_memory(SessionCall& call, uint64_t part_bytes);
  /// Returns the memory of long inputs and outputs.
  const PayloadMemory& payload_memory() const { return payload_memory_; }
  /// Returns a number for a new session. Local and network sessions share the numbers. A number is
  /// used again only after 2^32 sessions.
  uint32_t next_session_number() { return next_session_.fetch_add(1, std::memory_order_relaxed); }

  const SessionServices& services() const { return services_; }

 private:
  /// The calls that wait for one worker. The worker has at most one task that runs them, so most
  /// calls touch neither the queue of the worker nor its condition variable.
  struct alignas(64) CallQueue {
    std::mutex mutex;
    std::vector<SessionCall*> waiting;  // guarded by mutex
    bool has_task = false;              // guarded by mutex; the worker has a task for the calls
    bool has_ended = false;             // guarded by mutex; the worker takes no more tasks
    /// Calls that the task has taken out of `waiting`. Used by the worker only.
    std::vector<SessionCall*> taken;
    size_t next_taken = 0;
    /// Calls that were submitted and have not run yet.
    alignas(64) std::atomic<uint32_t> count{0};
  };

  uint32_t worker_of(const SessionCall& call, uint32_t idle_worker);
  /// Gives the worker a task that runs its calls. REQUIRES: the queue's mutex is held.
  Result<void> submit_task(uint32_t worker);
  /// The task: runs the calls that wait for this worker.
  void run_calls(uint32_t worker, WorkerEnvironment& environment);
  /// Returns whether calls are left for the task. Takes them out of `waiting`.
  static bool take_calls(CallQueue& queue);
  /// `next`: the call that the worker runs afterwards; null: not known.
  void execute(SessionCall& call, const SessionCall* next, WorkerEnvironment& environment);
  void run(SessionCall& call, const SessionCall* next, WorkerEnvironment& environment);
  void deliver(SessionCall& call, bool is_durable) const;
  /// Thread: the call's worker, or that of the answers.
  void record_durable(const SessionCall& call) const;

  const SessionServices services_;
  PayloadMemory payload_memory_;
  std::atomic<uint32_t> next_worker_{0};
  std::atomic<uint32_t> next_session_{0};
  std::vector<CallQueue> queues_;  // by worker
};

}  // namespace atolldb
