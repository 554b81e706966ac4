// The part of the engine that procedures and jobs use: storages, transactions, and storage look-up.
// `soc/procedure/procedure.h` includes this header and adds the contexts that the node passes in.
//
//   storage      key                               payload                calls
//   Array        index 0 .. record_count() - 1     fixed, 1 .. 2000 bytes  get, update, increment
//   MasterTree   0 .. 1024 bytes, ordered as by    0 .. 2048 bytes         get, insert, upsert,
//                memcmp (`ordered_key` for uint64)                         update, increment, add,
//                                                                          erase
//   Sequential   none: append-only                 0 .. 2048 bytes         append
//
// * A storage handle is cheap to make and to copy: `Array orders(*find_storage(...))`. Cursors
//   (ArrayCursor, MasterTreeCursor, SequentialCursor) scan a range in order, and must not outlive
//   the attempt of their transaction.
// * Units: offsets, lengths and capacities are bytes. Deadlines are epochs. The procedure chooses
//   the byte order of payloads; increments use the machine's byte order.
// * Every call takes the transaction and returns a Status (shared/base/status.h). Values below
//   `user_abort` are results, for instance not_found or out_of_range: the transaction continues.
//   All other values are abort statuses (`is_abort`) and end the attempt. The procedure returns an
//   abort status unchanged, and the node retries if that can help (`is_retryable`).
// * A transaction sees its own writes. Other transactions see them after the commit.
// * A transaction that reads a snapshot (shared/base/isolation.h) uses the same calls. If it may
//   only read, its writes return read_only_transaction.
// * A RecordRef names a record that a call has found. It is valid until the end of the transaction.
//   A call with a RecordRef needs no second look-up.
// * Procedures never call begin, commit or rollback. A job runs transactions with `run`.
// * Thread: the worker's. No call may be made from another thread.
#pragma once

#include "engine/api/storage_lookup.h"
#include "engine/array/array.h"
#include "engine/mastertree/cursor.h"
#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/prefetch.h"
#include "engine/sequential/sequential.h"
#include "engine/transaction/run.h"
#include "engine/transaction/transaction.h"
#include "shared/base/isolation.h"
#include "shared/base/status.h"

namespace atolldb {

// These checks fail if a constant differs from its limit in the table above.
static_assert(Array::kMaxPayloadBytes == 2000);
static_assert(MasterTree::kMaxKeyBytes == 1024 && MasterTree::kMaxPayloadBytes == 2048);
static_assert(Sequential::kMaxPayloadBytes == 2048);

}  // namespace atolldb
