// What a transaction asks of a storage's code, beside the bytes of its records. The storages stand
// above the transactions, so each type gives a table. Rare steps only: what every operation does is
// in the storage or in the record itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/vid.h"
#include "engine/transaction/worker_context.h"
#include "shared/memory/page_header.h"

namespace atolldb {

struct StorageOps {
  /// Follows `record`, whose VID is `is_elsewhere`, to where its key is now. Takes no locks; the
  /// answer may be stale again. False: the key has no record any more. `payload_at`: bytes from
  /// head to payload.
  bool (*track_moved)(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);
  /// A commit has deleted this record, whose page the begin epoch still protects.
  void (*note_erased)(WorkerContext& worker, const RecordHead* record,
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
