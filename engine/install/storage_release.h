// Frees the pages of a dropped storage (R34).
#pragma once

#include <cstdint>

#include "engine/transaction/worker_context.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// Unlinks the root and retires every page below it. Returns the number of pages retired. REQUIRES:
/// the storage is hidden; every begin epoch is later than that; the calling thread has entered
/// (WorkerContext::enter).
uint64_t release_storage(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
