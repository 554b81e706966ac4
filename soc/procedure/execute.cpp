#include "soc/procedure/execute.h"

#include <atoll/procedure.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "engine/api/procedure_attempt.h"
#include "engine/transaction/run.h"
#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/memory/epoch_stages.h"

namespace atolldb {
namespace {

/// Runs a function with the public API.
Status call_external(const ProcedureCode& procedure, Transaction& transaction,
                     std::span<const std::byte> input, ProcedureOutcome& outcome) {
  DCHECK(procedure.external != nullptr && procedure.library != nullptr);
  const Status prepared =
      procedure.library->prepare(*transaction.worker().view().control, outcome.message);
  if (prepared != Status::ok) [[unlikely]]
    return prepared;
  const ProcedureAttempt attempt(transaction, outcome.output, outcome.message);
  atoll_api::Context context(node_functions(), attempt.number(), {input.data(), input.size()});
  return static_cast<Status>(procedure.external(context));
}

/// Checks the length of the output, and takes memory for a long one. It runs before the commit, so
/// an output that cannot be delivered has no effect on the data.
Status check_output(const OutputLimit& limit, ProcedureOutcome& outcome) {
  const size_t bytes = outcome.output.size();
  // The body has replaced a longer output. Its memory would not count.
  const size_t most_bytes = std::max<size_t>(bytes, kSessionPartBytes);
  if (outcome.output.capacity() > most_bytes) outcome.output.shrink_to_fit();
  if (bytes > limit.max_bytes) {
    outcome.message = "its output of " + std::to_string(bytes) + " bytes is longer than " +
                      std::to_string(limit.max_bytes);
    if (!limit.advice.empty()) outcome.message += ": " + std::string(limit.advice);
    return Status::procedure_failed;
  }
  if (bytes <= kSessionPartBytes || limit.memory == nullptr) return Status::ok;
  if (limit.memory->take(bytes, outcome.memory)) return Status::ok;
  outcome.message = limit.memory->refuse("output", bytes);
  return Status::unavailable;
}

/// Runs the body of one attempt. Checks everything that user code returns or throws.
Status attempt(Transaction& transaction, const ProcedureCode& procedure,
               std::span<const std::byte> input, const OutputLimit& limit,
               ProcedureOutcome& outcome) {
  outcome.output.clear();
  // The buffer of a long output of the attempt before. Its memory no longer counts.
  if (outcome.output.capacity() > kSessionPartBytes) free_buffer(outcome.output);
  outcome.memory = {};
  outcome.message.clear();
  Status status = Status::procedure_failed;
  try {
    if (procedure.function != nullptr) {
      ProcedureContext context(transaction, input, outcome.output, &outcome.message);
      status = procedure.function(context);
    } else {
      status = call_external(procedure, transaction, input, outcome);
    }
  } catch (const std::exception& error) {
    outcome.message = std::string("it threw: ") + error.what();
    return Status::procedure_failed;
  } catch (...) {
    outcome.message = "it threw an object that is not a std::exception";
    return Status::procedure_failed;
  }
  if (status >= Status::count_) {
    outcome.message =
        "it returned " + std::to_string(static_cast<uint32_t>(status)) + ", which is not a status";
    return Status::procedure_failed;
  }
  return status == Status::ok ? check_output(limit, outcome) : status;
}

/// Runs the prefetch function of the next call, after the body of the active transaction. It is a
/// hint, so the outcome of either call does not depend on it, nor on what it throws.
void prefetch_for(const NextCall& next, Transaction& running) {
  // A transaction that reads a snapshot has no volatile pages to find the records in.
  if (next.code == nullptr || !next.code->has_prefetch() || running.snapshot() != nullptr) return;
  const ProcedureCode& code = *next.code;
  try {
    if (code.prefetch != nullptr) {
      PrefetchContext context(running, next.input);
      code.prefetch(context);
    } else if (code.library->is_prepared()) {
      const PrefetchRun run(running);
      atoll_api::Prefetch prefetch(node_functions(), run.number(),
                                   {next.input.data(), next.input.size()});
      code.external_prefetch(prefetch);
    }
  } catch (...) {
    DCHECK(running.is_active());
  }
}

std::string why_no_snapshot(const WorkerContext& worker, uint32_t id) {
  if (worker.published() == nullptr) {
    return "snapshots: this cluster takes no snapshots: they need durability.mode \"durable\" and "
           "durability.scheme \"gleaned\": use isolation serializable";
  }
  if (id != 0) {
    return "snapshot " + std::to_string(id) +
           ": is not the newest one, nor pinned: `atoll snapshot ls` lists those that can be read";
  }
  return "snapshots: the first one could not be taken in time: `atoll status` says why the last "
         "attempt failed";
}

}  // namespace

ProcedureOutcome execute_procedure(WorkerEnvironment& environment, const ProcedureCode& procedure,
                                   std::span<const std::byte> input, uint64_t deadline_epoch,
                                   const OutputLimit& limit, TransactionMode mode,
                                   const NextCall& next) {
  ProcedureOutcome outcome;
  Transaction& own = environment.transaction;
  DCHECK(procedure.is_set() && fault_of(mode).empty());
  DCHECK(!own.is_active());
  const Vid last = own.last_vid();
  uint32_t attempts = 0;
  bool has_prefetched = false;
  const auto body = [&](Transaction& transaction) {
    ++attempts;
    const Status status = attempt(transaction, procedure, input, limit, outcome);
    // Retries find the records in the caches already.
    if (status == Status::ok && !std::exchange(has_prefetched, true)) {
      prefetch_for(next, transaction);
    }
    return status;
  };
  const uint64_t began_ns = monotonic_time_ns();
  outcome.status = run(own, environment.backoff, deadline_epoch, body, mode);
  outcome.ended_ns = monotonic_time_ns();
  outcome.execution_ns = ns_since(began_ns, outcome.ended_ns);
  outcome.retries = attempts == 0 ? 0 : attempts - 1;
  DCHECK(outcome.status < Status::count_ && !own.is_active());
  if (outcome.status == Status::snapshot_not_found) {
    outcome.message = why_no_snapshot(own.worker(), mode.snapshot);
  }
  // The reads of the transaction were verified only if it ended with one of these results. After
  // any other abort the client learns nothing about the data, so the answer waits for no epoch.
  const bool is_verified = !is_abort(outcome.status) || outcome.status == Status::user_abort ||
                           outcome.status == Status::procedure_failed;
  if (is_verified) outcome.commit_epoch = own.commit_epoch();
  // A new VID shows that this transaction has written: each commit that writes has a VID of its
  // own.
  if (own.last_vid() != last) outcome.commit_version = own.last_vid().version();
  DCHECK(outcome.status != Status::ok || outcome.output.size() <= limit.max_bytes);
  if (outcome.status != Status::ok) {
    // The buffer of a long output is freed here, so that only outputs that count take memory.
    free_buffer(outcome.output);
    outcome.memory = {};
  } else {
    outcome.message.clear();
  }
  return outcome;
}

std::string fault_of(TransactionMode mode) {
  if (mode.isolation >= Isolation::count_) {
    return "isolation " + std::to_string(static_cast<uint32_t>(mode.isolation)) +
           ": must be serializable (0), snapshot (1) or snapshot_read_only (2)";
  }
  if (mode.snapshot == 0 || mode.isolation == Isolation::snapshot_read_only) return {};
  return "snapshot " + std::to_string(mode.snapshot) + ": the isolation is " +
         std::string(to_string(mode.isolation)) +
         ": only snapshot_read_only reads a named snapshot";
}

Result<std::string> execute_job(WorkerEnvironment& environment, JobFunction job,
                                std::string_view input, uint32_t workers_on_node,
                                const std::atomic<bool>& stop) {
  DCHECK(job != nullptr && environment.ordinal < workers_on_node);
  JobContext context(environment.transaction, environment.backoff, input, environment.ordinal,
                     workers_on_node, stop);
  Result<std::string> output;
  try {
    output = job(context);
  } catch (const std::exception& error) {
    output = make_error(ExitCode::failed, std::string("job: it threw: ") + error.what());
  } catch (...) {
    output = make_error(ExitCode::failed, "job: it threw an object that is not a std::exception");
  }
  if (environment.transaction.is_active()) {
    environment.transaction.rollback(Status::procedure_failed);
  }
  if (output && output->size() > kMaxProcedureOutputBytes) {
    return make_error(ExitCode::failed, "job: its output of " + std::to_string(output->size()) +
                                            " bytes is longer than " +
                                            std::to_string(kMaxProcedureOutputBytes));
  }
  return output;
}

}  // namespace atolldb
