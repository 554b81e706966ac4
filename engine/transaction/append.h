// Appends to a sequential storage, as steps of the commit protocol (R17, R23). Thread: the worker
// that owns the list.
#pragma once

#include <cstdint>

#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"

namespace atolldb {

/// Creates the worker's list if it does not exist. Called before any lock is taken. Returns
/// volatile_pool_exhausted if there are no pages for it.
Status prepare_list(WorkerContext& worker, StorageControl& storage);

/// Makes the list's version word odd. REQUIRES: the in-commit epoch is not published yet.
/// Idempotent.
void begin_append(WorkerContext& worker, StorageControl& storage);

/// Appends the record. REQUIRES: the commit is verified, and has reserved a page in case the last
/// page is full.
void apply_append(WorkerContext& worker, StorageControl& storage, const LogRecord& log, Vid vid);

/// Publishes the appends: the version word becomes the next even value. Idempotent.
void end_append(WorkerContext& worker, StorageControl& storage);

/// Restores the version word if nothing was appended. Idempotent.
void cancel_append(WorkerContext& worker, StorageControl& storage);

/// Returns the version word of this worker's list. REQUIRES: the list exists.
const std::atomic<uint64_t>* own_list_version(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
