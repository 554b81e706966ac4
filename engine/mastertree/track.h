// Finds a record again that a split, compaction or next-layer conversion has moved.
#pragma once

#include <cstdint>

#include "engine/transaction/vid.h"
#include "engine/transaction/worker_context.h"

namespace atolldb {

/// Follows `record`, whose VID is `is_elsewhere`, to where its key is now: through the twins of its
/// page, and into the next layer. Takes no locks; the answer may be stale again. False: the key has
/// no record any more (it was dead and left out, or dropped: R8); an array's never has.
/// `payload_at`: bytes from head to payload.
bool track_moved(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);

}  // namespace atolldb
