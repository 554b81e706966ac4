// Appending, as steps of the commit protocol (R17, R23). Thread: the worker whose list it is.
#pragma once

#include <cstdint>

#include "engine/log/log_record.h"
#include "engine/transaction/vid.h"
#include "engine/transaction/worker_context.h"
#include "shared/status.h"

namespace atolldb {

/// Before any lock: makes sure that the list exists. `volatile_pool_exhausted` if it cannot.
Status prepare_list(WorkerContext& worker, StorageControl& storage);

/// Before the in-commit epoch is published: the list's version word becomes odd. Idempotent.
void begin_append(WorkerContext& worker, StorageControl& storage);

/// After verification. The commit has reserved a page for the case that the last one is full.
void apply_append(WorkerContext& worker, StorageControl& storage, const LogRecord& log, Vid vid);

/// Everything is visible: the version word becomes the next even value. Idempotent.
void end_append(WorkerContext& worker, StorageControl& storage);

/// Nothing was appended: the version word becomes what it was. Idempotent.
void cancel_append(WorkerContext& worker, StorageControl& storage);

/// Version word of this worker's list, which exists.
const std::atomic<uint64_t>* own_list_version(WorkerContext& worker, StorageControl& storage);

/// Retires every page of a dropped storage (R34).
void release_sequential(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
