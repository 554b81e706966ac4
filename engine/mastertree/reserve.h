// Reserving a record (R10): the physical, unlogged part of an insert.
#pragma once

#include <cstdint>

#include "engine/mastertree/descent.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// Finds the record of `key`, or adds one with VID (current epoch, 0, deleted), with room for
/// `payload_bytes` either way. Splits, adds layers and grows records as needed; the transaction's
/// page-version set follows (R13). ok, or an abort status.
Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Location& location);

}  // namespace atolldb
