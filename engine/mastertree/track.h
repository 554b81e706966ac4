// Finds a record again that a split, compaction or next-layer conversion has moved.
#pragma once

#include <cstdint>

#include "engine/format/vid.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Follows a relocated record to the current record of its key. Follows the twins of its page, and
/// next layers. Takes no locks, so the result may already be stale. `payload_at`: bytes from head
/// to payload. Returns false if the key no longer has a record: it was a tombstone that a
/// compaction removed, or its page was dropped (R8). Always false for arrays, which have no twins.
bool track_moved(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);

}  // namespace atolldb
