// Runs procedures and jobs on a worker: whatever user code does ends its own transaction at most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "soc/procedure/procedure.h"
#include "soc/worker/worker.h"

namespace atolldb {

struct ProcedureOutcome {
  Status status = Status::ok;
  std::vector<std::byte> output;  // of a committed transaction
  std::string message;            // why it failed, when there is more to say than `status`
  /// What the outcome depends on, and when it may be told to a client: when this epoch is durable
  /// (R19, R20). 0: depends on nothing.
  uint64_t commit_epoch = 0;
  uint64_t commit_version = 0;  // VID word of what was written; 0: nothing was
};

/// One transaction, with retries until `deadline_epoch`. More output than `max_output_bytes` is
/// procedure_failed. Never throws.
ProcedureOutcome execute_procedure(WorkerEnvironment& environment, ProcedureFunction procedure,
                                   std::span<const std::byte> input, uint64_t deadline_epoch,
                                   uint32_t max_output_bytes = kMaxProcedureOutputBytes,
                                   TransactionMode mode = {});

/// Why there can be no such transaction; empty: there can.
std::string fault_of(TransactionMode mode);

/// Never throws.
Result<std::string> execute_job(WorkerEnvironment& environment, JobFunction job,
                                std::string_view input, uint32_t workers_on_node,
                                const std::atomic<bool>& stop);

}  // namespace atolldb
