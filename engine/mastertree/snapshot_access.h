// Operations of snapshot transactions on a Master-tree (R18). They give the same results as those
// of MasterTree, from the snapshot's root and the transaction's own writes only.
#pragma once

#include <cstdint>

#include "engine/format/tree_key.h"
#include "engine/mastertree/tree_read.h"
#include "engine/transaction/storage_handle.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// REQUIRES: the transaction reads a snapshot, or is not active (each operation then returns
/// invalid_argument). The caller has checked the lengths, except for the key length in `read`.
class SnapshotTreeAccess {
 public:
  SnapshotTreeAccess(Transaction& txn, const StorageHandle& handle) : txn_(txn), handle_(handle) {}

  /// As read_tree_record. `request.seen` is 0 for a record that only this transaction has written.
  Status read(Bytes key, TreeRead& request) { return check_and_read(key, request, false); }
  /// As read, for a record that will be written. May return read_only_transaction.
  Status read_for_write(Bytes key, TreeRead& request) { return check_and_read(key, request, true); }

  Status insert(Bytes key, Bytes payload);
  Status upsert(Bytes key, Bytes payload);
  Status update(Bytes key, Bytes payload);
  Status update_range(Bytes key, uint32_t offset, Bytes bytes);
  Status increment(Bytes key, uint32_t offset, IncrementType type, const void* delta);
  Status erase(Bytes key);

 private:
  struct Whole;
  Status check_and_read(Bytes key, TreeRead& request, bool writes);
  Status read_whole(Bytes key, Whole& record);
  Status find_place(Bytes key, uint32_t payload_bytes, RecordRef& ref);
  Status plan(Bytes key, Bytes payload);

  Transaction& txn_;
  const StorageHandle& handle_;
};

}  // namespace atolldb
