// Execution of procedures and jobs on a worker. Misbehaving user code ends at most its own
// transaction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "soc/procedure/payload_memory.h"
#include "soc/procedure/procedure.h"
#include "soc/procedure/registry.h"
#include "soc/worker/worker.h"

namespace atolldb {

struct ProcedureOutcome {
  Status status = Status::ok;
  std::vector<std::byte> output;  // output of a committed transaction
  PayloadMemory::Share memory;    // of an output that is longer than one part
  std::string message;            // the reason of a failure, if `status` alone does not say it
  /// The epoch that the outcome depends on. A client may learn the outcome when this epoch is
  /// durable (R19, R20). 0: the outcome depends on no commit.
  uint64_t commit_epoch = 0;
  uint64_t commit_version = 0;  // Vid::version() of the written records; 0: none was written
  uint32_t retries = 0;         // attempts after the first one
  uint64_t ended_ns = 0;        // end of the last attempt, as monotonic_time_ns(); 0: none began
  uint64_t execution_ns = 0;    // from the begin of the first attempt to the end of the last one
};

/// The call that a worker runs after the present one, if it is known. Its prefetch function runs
/// before the commit of the present call.
struct NextCall {
  const ProcedureCode* code = nullptr;  // null: not known
  std::span<const std::byte> input{};
};

/// Limits of an output.
struct OutputLimit {
  uint32_t max_bytes = kMaxProcedureOutputBytes;
  PayloadMemory* memory = nullptr;  // counts outputs that are longer than one part; null: none does
  std::string_view advice{};        // for the error of a longer output
};

/// Runs one transaction, with retries until `deadline_epoch`. If the output exceeds its limit, the
/// status is procedure_failed. If its memory has no room, the status is unavailable. Nothing was
/// committed then. Never throws. Reads the clock twice, for statistics: see
/// procedure_metrics.h.
ProcedureOutcome execute_procedure(WorkerEnvironment& environment, const ProcedureCode& procedure,
                                   std::span<const std::byte> input, uint64_t deadline_epoch,
                                   const OutputLimit& limit = {}, TransactionMode mode = {},
                                   const NextCall& next = {});

/// Returns why this mode is invalid, or "" if it is valid.
std::string fault_of(TransactionMode mode);

/// Runs a job and returns its output. Never throws.
Result<std::string> execute_job(WorkerEnvironment& environment, JobFunction job,
                                std::string_view input, uint32_t workers_on_node,
                                const std::atomic<bool>& stop);

}  // namespace atolldb
