// Reservation of a record (R10): the physical part of an insert, which is not logged.
#pragma once

#include <cstdint>

#include "engine/mastertree/descent.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// Finds the record of `key`, or adds one with VID (current epoch, 0, deleted). It has room for
/// `payload_bytes` either way. A stable tombstone becomes a pending one (R12). A record that was
/// added or made pending is in the read set on return. Splits pages, adds layers and grows records
/// as needed, and updates the transaction's page-version set (R13). Returns ok, or an abort status.
Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Location& location);

/// Installs a volatile page in place of the null word that was read (R1). The page is a copy of the
/// snapshot's. Without a snapshot page it is the tree's first border page, for records with about
/// `payload_bytes`. Returns ok if the caller is to search again, or pointer_installed if the
/// transaction depends on that word (R5).
Status install_missing(Transaction& txn, StorageControl& storage, const MissingPage& missing,
                       uint32_t payload_bytes);

/// Reserves records for the first keys that ascend, follow all others of one page of the first
/// layer, and fit. `done`: how many were reserved. Sets `records[0 ... done)`, and `reserved` to
/// the VID of all of them. If `done` is 0, the caller reserves the first key with `reserve`.
Status reserve_run(Transaction& txn, StorageControl& storage, std::span<const Bytes> keys,
                   std::span<const Bytes> payloads, std::span<TreeRecord*> records, uint32_t& done,
                   Vid& reserved);

}  // namespace atolldb
