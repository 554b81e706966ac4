// The table of functions that a transaction calls in the code of a storage. Transactions may not
// include storages, so each storage type supplies a table. It has rare steps only; frequent steps
// do not call through it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/vid.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/page_header.h"

namespace atolldb {

struct StorageOps {
  /// Follows a relocated `record` to the current record of its key. Takes no locks, so the result
  /// may already be stale. Returns false if the key no longer has a record. `payload_at`: bytes
  /// from head to payload.
  bool (*track_moved)(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);
  /// A commit has deleted this record, whose page the begin epoch still protects.
  void (*record_erased)(WorkerContext& worker, const RecordHead* record,
                      std::span<const std::byte> key);
};

extern const StorageOps kArrayOps;       // engine/array/array_ops.cpp
extern const StorageOps kMastertreeOps;  // engine/mastertree/mastertree_ops.cpp

/// The table of the storage whose page holds the record. Write sets and read sets have records of
/// arrays and Master-trees only: appends are prepared and applied by append.h.
inline const StorageOps& ops_of(const RecordHead* record) {
  return page_of(record)->type == PageType::mastertree_border ? kMastertreeOps : kArrayOps;
}

}  // namespace atolldb
