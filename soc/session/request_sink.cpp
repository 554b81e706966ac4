#include "soc/session/request_sink.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/memory/epoch_stages.h"

namespace atolldb {

RequestSink::RequestSink(SessionServices services)
    : services_(std::move(services)), queued_(services_.workers.size()) {
  CHECK(services_.procedures != nullptr && services_.metrics != nullptr);
  CHECK(services_.refusal != nullptr);
}

std::optional<Refusal> RequestSink::admit(SessionCall& call) {
  const Result<RegisteredProcedure> found = services_.procedures->procedure(call.procedure);
  if (!found) return Refusal{Status::procedure_not_found, found.error().message};
  call.mode.isolation =
      call.isolation == 0 ? found->isolation : static_cast<Isolation>(call.isolation - 1);
  if (std::string fault = fault_of(call.mode); !fault.empty()) {
    return Refusal{Status::invalid_argument, std::move(fault)};
  }
  if (auto refusal = services_.refusal(call.mode.isolation)) return refusal;
  const auto workers = static_cast<uint32_t>(services_.workers.size());
  call.worker = worker_of(call);
  if (call.worker >= workers) {
    return Refusal{Status::invalid_argument, "worker " + std::to_string(call.worker) +
                                                 ": the node has workers 0 to " +
                                                 std::to_string(workers - 1)};
  }
  call.registered = *found;
  call.deadline_epoch = services_.deadline_epoch();
  return std::nullopt;
}

/// Returns the worker that the call names. If it names none, its affinity decides, or round robin
/// if it has none.
uint32_t RequestSink::worker_of(const SessionCall& call) {
  if (call.worker != kAnyWorker) return call.worker;
  const auto workers = static_cast<uint32_t>(services_.workers.size());
  DCHECK(workers > 0);
  // Relaxed: the counter only spreads the load.
  if (call.affinity == 0) return next_worker_.fetch_add(1, std::memory_order_relaxed) % workers;
  // Uses the upper half of the product, because it depends on all bits of the affinity.
  return static_cast<uint32_t>((call.affinity * 0x9e3779b97f4a7c15ull) >> 32) % workers;
}

void RequestSink::refuse(SessionCall& call, Refusal refusal) const {
  if (refusal.status == Status::unavailable || refusal.status == Status::recovering) {
    services_.metrics->unavailable.fetch_add(1, std::memory_order_relaxed);
  }
  call.outcome = {};
  call.outcome.status = refusal.status;
  call.outcome.message = std::move(refusal.why);
}

RequestSink::Submitted RequestSink::submit(SessionCall& call, CallOwner& owner) {
  const uint32_t worker = call.worker;
  DCHECK(worker < queued_.size() && call.registered.code.is_set());
  // seq_cst: see SessionServer::signal_end.
  if (queued_[worker].load(std::memory_order_seq_cst) >= kMaxQueuedPerWorker) {
    return Submitted::full;
  }
  queued_[worker].fetch_add(1, std::memory_order_relaxed);
  call.owner = &owner;
  // The task is so small that std::function stores it without a heap allocation.
  const auto submitted = services_.workers[worker]->submit(
      [this, &call](WorkerEnvironment& environment) { execute(call, environment); });
  if (submitted) return Submitted::yes;
  queued_[worker].fetch_sub(1, std::memory_order_relaxed);
  if (submitted.error().code == ExitCode::resources) return Submitted::full;
  refuse(call, {Status::unavailable, submitted.error().message});
  return Submitted::no;
}

void RequestSink::run(SessionCall& call, WorkerEnvironment& environment) const {
  if (call.start_before_ns != 0 && monotonic_time_ns() > call.start_before_ns) {
    call.outcome = {};
    call.outcome.status = Status::deadline_exceeded;
    call.outcome.message = "its deadline has passed before it began: it had no effect";
    return;
  }
  call.outcome = execute_procedure(environment, call.registered.code, call.input,
                                   call.deadline_epoch, kMaxSessionOutputBytes, call.mode);
  if (services_.procedure_metrics == nullptr) return;
  services_.procedure_metrics->add_result(call.worker, call.registered.ordinal, call.outcome.status,
                                          call.outcome.retries, call.outcome.execution_ns);
}

void RequestSink::execute(SessionCall& call, WorkerEnvironment& environment) {
  DCHECK(call.worker == environment.ordinal && call.registered.code.is_set());
  run(call, environment);
  // seq_cst: see SessionServer::signal_end.
  const uint32_t queued = queued_[environment.ordinal].fetch_sub(1, std::memory_order_seq_cst);
  DCHECK(queued > 0);
  call.owner->leave_queue();
  if (call.answer_at == AnswerAt::precommitted) return deliver(call, true);
  services_.answers->add(call.outcome.commit_epoch,
                         [this, &call](bool is_durable) { deliver(call, is_durable); });
}

void RequestSink::deliver(SessionCall& call, bool is_durable) const {
  if (!is_durable || call.outcome.status == Status::cluster_failed) {
    services_.metrics->outcome_unknown.fetch_add(1, std::memory_order_relaxed);
    ProcedureOutcome unknown;
    unknown.status = Status::outcome_unknown;
    unknown.message = "the cluster failed or ended while the request was in flight";
    call.outcome = std::move(unknown);
  } else if (call.answer_at == AnswerAt::durable) {
    record_durable(call);
  }
  call.owner->finish(call);
}

void RequestSink::record_durable(const SessionCall& call) const {
  ProcedureMetrics* const metrics = services_.procedure_metrics;
  if (metrics == nullptr) return;
  // DurableAnswers calls on its own thread, or at once on the worker. Each has its own counters.
  const uint32_t thread =
      services_.answers->is_own_thread() ? metrics->answers_thread() : call.worker;
  metrics->add_durable(thread, call.registered.ordinal,
                       ns_since(call.arrived_ns, monotonic_time_ns()));
}

}  // namespace atolldb
