#include "soc/session/request_sink.h"

#include <utility>

#include "shared/base/check.h"
#include "shared/memory/epoch_stages.h"

namespace atolldb {

bool refuse_if_late(SessionCall& call) {
  if (call.start_before_ns == 0 || monotonic_time_ns() <= call.start_before_ns) return false;
  call.outcome = {};
  call.outcome.status = Status::deadline_exceeded;
  call.outcome.message = "its deadline has passed before it began: it had no effect";
  return true;
}

void free_long_input(SessionCall& call) {
  if (call.input_memory.bytes() == 0) return;
  free_buffer(call.input);
  call.input_memory = {};
}

namespace {

Refusal no_room_for_input(uint64_t bytes, PayloadMemory& memory) {
  return {Status::unavailable, memory.refuse("input", bytes)};
}

}  // namespace

RequestSink::RequestSink(SessionServices services)
    : services_(std::move(services)),
      payload_memory_(services_.payloads.memory_bytes,
                      services_.metrics == nullptr ? nullptr : &services_.metrics->payloads),
      queues_(services_.workers.size()) {
  CHECK(services_.procedures != nullptr && services_.metrics != nullptr);
  CHECK(services_.refusal != nullptr);
}

std::optional<Refusal> RequestSink::take_input_memory(SessionCall& call, uint32_t input_bytes) {
  DCHECK(input_bytes > kSessionPartBytes && input_bytes <= services_.payloads.max_input_bytes);
  if (payload_memory_.take(input_bytes, call.input_memory)) {
    call.input_bytes = input_bytes;
    return std::nullopt;
  }
  return no_room_for_input(input_bytes, payload_memory_);
}

std::optional<Refusal> RequestSink::expect_input(SessionCall& call, uint32_t input_bytes) {
  DCHECK(input_bytes > kSessionPartBytes && input_bytes <= services_.payloads.max_input_bytes);
  if (payload_memory_.has_room(input_bytes)) {
    call.input_bytes = input_bytes;
    return std::nullopt;
  }
  return no_room_for_input(input_bytes, payload_memory_);
}

std::optional<Refusal> RequestSink::grow_input_memory(SessionCall& call, uint64_t part_bytes) {
  if (payload_memory_.grow(part_bytes, call.input_memory)) return std::nullopt;
  return no_room_for_input(call.input_bytes, payload_memory_);
}

std::optional<Refusal> RequestSink::admit(SessionCall& call, uint32_t idle_worker) {
  const Result<RegisteredProcedure> found = services_.procedures->procedure(call.procedure);
  if (!found) return Refusal{Status::procedure_not_found, found.error().message};
  call.mode.isolation =
      call.isolation == 0 ? found->isolation : static_cast<Isolation>(call.isolation - 1);
  if (std::string fault = fault_of(call.mode); !fault.empty()) {
    return Refusal{Status::invalid_argument, std::move(fault)};
  }
  if (auto refusal = services_.refusal(call.mode.isolation)) return refusal;
  const auto workers = static_cast<uint32_t>(services_.workers.size());
  call.worker = worker_of(call, idle_worker);
  if (call.worker >= workers) {
    return Refusal{Status::invalid_argument, "worker " + std::to_string(call.worker) +
                                                 ": the node has workers 0 to " +
                                                 std::to_string(workers - 1)};
  }
  call.registered = *found;
  call.deadline_epoch = services_.deadline_epoch();
  return std::nullopt;
}

/// Returns the worker that the call names. If it names none, its affinity decides. Without an
/// affinity, an idle worker runs it, or the one of two workers with fewer calls. Round robin
/// chooses these two. So a call seldom waits for a long one while another worker is free.
uint32_t RequestSink::worker_of(const SessionCall& call, uint32_t idle_worker) {
  if (call.worker != kAnyWorker) return call.worker;
  if (call.affinity == 0 && idle_worker != kAnyWorker) return idle_worker;
  const auto workers = static_cast<uint32_t>(services_.workers.size());
  DCHECK(workers > 0);
  if (call.affinity == 0) {
    // Relaxed, here and below: the counters only spread the load. The call that runs counts, too.
    const uint32_t first = next_worker_.fetch_add(1, std::memory_order_relaxed) % workers;
    const uint32_t second = first + 1 == workers ? 0 : first + 1;
    const auto calls = [&](uint32_t worker) {
      return queues_[worker].count.load(std::memory_order_relaxed);
    };
    return calls(second) < calls(first) ? second : first;
  }
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

Result<void> RequestSink::submit_task(uint32_t worker) {
  // The task is so small that std::function stores it without a heap allocation.
  return services_.workers[worker]->submit(
      [this, worker](WorkerEnvironment& environment) { run_calls(worker, environment); });
}

RequestSink::Submitted RequestSink::submit(SessionCall& call, CallOwner& owner) {
  DCHECK(call.worker < queues_.size() && call.registered.code.is_set());
  CallQueue& queue = queues_[call.worker];
  // seq_cst: see SessionServer::signal_end.
  if (queue.count.load(std::memory_order_seq_cst) >= kMaxQueuedPerWorker) return Submitted::full;
  call.owner = &owner;
  std::string why = "its worker has ended: the cluster stops";
  {
    const std::lock_guard guard(queue.mutex);
    if (!queue.has_task && !queue.has_ended) {
      const auto submitted = submit_task(call.worker);
      if (!submitted && submitted.error().code == ExitCode::resources) return Submitted::full;
      queue.has_task = submitted.has_value();
      if (!submitted) why = submitted.error().message;
    }
    if (queue.has_task && !queue.has_ended) {
      // The worker counts the call down after it has taken the mutex, so not before this.
      queue.count.fetch_add(1, std::memory_order_relaxed);
      queue.waiting.push_back(&call);
      return Submitted::yes;
    }
  }
  refuse(call, {Status::unavailable, std::move(why)});
  return Submitted::no;
}

bool RequestSink::take_calls(CallQueue& queue) {
  if (queue.next_taken < queue.taken.size()) return true;
  queue.taken.clear();
  queue.next_taken = 0;
  const std::lock_guard guard(queue.mutex);
  DCHECK(queue.has_task);
  queue.taken.swap(queue.waiting);
  queue.has_task = !queue.taken.empty();
  return queue.has_task;
}

void RequestSink::run_calls(uint32_t worker, WorkerEnvironment& environment) {
  CallQueue& queue = queues_[worker];
  for (uint32_t ran = 1; take_calls(queue); ++ran) {
    SessionCall& call = *queue.taken[queue.next_taken++];
    const bool has_next = queue.next_taken < queue.taken.size();
    execute(call, has_next ? queue.taken[queue.next_taken] : nullptr, environment);
    if (ran % kCallsPerTask != 0) continue;
    const std::lock_guard guard(queue.mutex);
    DCHECK(queue.has_task);
    const auto submitted = submit_task(worker);
    if (submitted) return;
    // The queue of the worker is full, or the worker ends. So this task runs the other calls. It
    // ends, because a worker that ends gets no more calls.
    if (submitted.error().code != ExitCode::resources) queue.has_ended = true;
  }
}

void RequestSink::run(SessionCall& call, const SessionCall* next, WorkerEnvironment& environment) {
  if (refuse_if_late(call)) return;
  NextCall next_call;
  if (next != nullptr) next_call = {&next->registered.code, next->input};
  // A shorter limit than that of the node is the limit of an older client.
  const bool is_limit_of_node = call.max_output_bytes == services_.payloads.max_output_bytes;
  const OutputLimit limit{call.max_output_bytes, &payload_memory_,
                          is_limit_of_node ? "raise procedures.max_output"
                                           : "the limit of this client, which takes no parts"};
  call.outcome = execute_procedure(environment, call.registered.code, call.input,
                                   call.deadline_epoch, limit, call.mode, next_call);
  if (services_.procedure_metrics == nullptr) return;
  services_.procedure_metrics->add_result(call.worker, call.registered.ordinal, call.outcome.status,
                                          call.outcome.retries, call.outcome.execution_ns);
}

void RequestSink::execute(SessionCall& call, const SessionCall* next,
                          WorkerEnvironment& environment) {
  DCHECK(call.worker == environment.ordinal && call.registered.code.is_set());
  run(call, next, environment);
  // seq_cst: see SessionServer::signal_end.
  const uint32_t queued =
      queues_[environment.ordinal].count.fetch_sub(1, std::memory_order_seq_cst);
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
  const bool has_waited = services_.answers->is_own_thread();
  const uint32_t thread = has_waited ? metrics->answers_thread() : call.worker;
  // The worker answers at the end of the last attempt, so it does not read the clock again.
  const bool has_time = !has_waited && call.outcome.ended_ns != 0;
  const uint64_t now_ns = has_time ? call.outcome.ended_ns : monotonic_time_ns();
  metrics->add_durable(thread, call.registered.ordinal, ns_since(call.arrived_ns, now_ns));
}

}  // namespace atolldb
