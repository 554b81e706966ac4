// Reserving a record (R10): the physical, unlogged part of an insert.
#pragma once

#include <cstdint>

#include "engine/mastertree/descent.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// Finds the record of `key`, or adds one with VID (current epoch, 0, deleted), with room for
/// `payload_bytes` either way. A settled dead record is announced as reviving (R12). A record that
/// was added or announced is in the read set on return. Splits, adds layers and grows records as
/// needed; the transaction's page-version set follows (R13). ok, or an abort status.
Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Location& location);

/// Puts a volatile page behind the null word that was read (R1): a copy of the snapshot's, or,
/// where there is none, the tree's first border page, for records with about `payload_bytes`. ok:
/// look again. pointer_installed if the transaction depends on that word (R5).
Status install_missing(Transaction& txn, StorageControl& storage, const MissingPage& missing,
                       uint32_t payload_bytes);

/// Reserves records for the first keys, as long as they ascend, go behind all others of one page of
/// the first layer, and fit. `done`: how many, with `records[0 ... done)` and the VID that all of
/// them got; 0: reserve the first one the ordinary way.
Status reserve_run(Transaction& txn, StorageControl& storage, std::span<const Bytes> keys,
                   std::span<const Bytes> payloads, std::span<TreeRecord*> records, uint32_t& done,
                   Vid& reserved);

}  // namespace atolldb
