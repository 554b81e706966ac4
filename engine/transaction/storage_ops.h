// Interface from transactions to the code of storages, which this module may not include. Rare
// steps go through a table per storage type (StorageOps). The steps of appends to sequential
// storages are plain functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "engine/transaction/access_sets.h"
#include "engine/transaction/worker_context.h"
#include "shared/base/status.h"
#include "shared/memory/page_header.h"

namespace atolldb {

struct StorageOps {
  /// Follows a relocated `record` to the current record of its key. Takes no locks, so the result
  /// may already be stale. Returns false if the key no longer has a record. `payload_at`: bytes
  /// from head to payload.
  bool (*track_moved)(WorkerContext& worker, RecordHead*& record, uint16_t& payload_at);
  /// Called when a commit has deleted this record. The begin epoch still protects its page.
  void (*record_erased)(WorkerContext& worker, const RecordHead* record,
                        std::span<const std::byte> key);
};

extern const StorageOps kArrayOps;       // defined in engine/array/array.cpp
extern const StorageOps kMastertreeOps;  // defined in engine/mastertree/track.cpp

/// Searches again for the key of `entry`, from its page on (R108). Waits for nothing, so a commit
/// may call it with locks held (R23). Returns true if the key is absent, or if it has a record in a
/// page that was in place during the call; sets `record` to that record, or to null. Returns false
/// if that is not known, or if a committed record may have been removed from the page since the
/// begin epoch of the worker. Defined in engine/mastertree/absence.cpp.
bool search_absent_key(WorkerContext& worker, const AbsenceEntry& entry, RecordHead*& record);

/// Returns the operations of the record's storage type. REQUIRES: the record belongs to an array or
/// a Master-tree. Read sets and write sets have only such records.
inline const StorageOps& ops_of(const RecordHead* record) {
  return page_of(record)->type == PageType::mastertree_border ? kMastertreeOps : kArrayOps;
}

/// Creates the worker's list of the storage if it does not exist. The commit calls this before it
/// takes any lock. Returns volatile_pool_exhausted if there are no pages for the list.
Status prepare_list(WorkerContext& worker, StorageControl& storage);

/// Makes the list's version word odd. REQUIRES: the in-commit epoch is not published yet.
/// Idempotent.
void begin_append(WorkerContext& worker, StorageControl& storage);

/// Appends the record. REQUIRES: the commit is verified, and has reserved a page in case the last
/// page is full.
void apply_append(WorkerContext& worker, StorageControl& storage, const LogRecord& log, Vid vid);

/// Publishes the appends: the version word becomes the next even value. Idempotent.
void end_append(WorkerContext& worker, StorageControl& storage);

/// Restores the even version word from before begin_append. REQUIRES: nothing was appended.
/// Idempotent.
void cancel_append(WorkerContext& worker, StorageControl& storage);

/// Returns the version word of this worker's list. REQUIRES: the list exists.
const std::atomic<uint64_t>* own_list_version(WorkerContext& worker, StorageControl& storage);

}  // namespace atolldb
