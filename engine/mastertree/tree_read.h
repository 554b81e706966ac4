// Reads a Master-tree record that was found, and enters it into the transaction's sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/tree_record.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

struct TreeRead {
  uint32_t offset = 0;
  uint32_t count = 0;  // at most; with `exact`, out_of_range if the payload is shorter
  bool exact = false;
  void* out = nullptr;
  uint32_t payload_bytes = 0;  // result: whole length, own writes included
  Vid seen{};  // result; if is_elsewhere, nothing was read: search for the key again
};

inline RecordRef make_ref(const WorkerContext& worker, TreeRecord* record,
                          std::span<const std::byte> key) {
  RecordRef ref;
  ref.record = &record->head;
  ref.payload_at = record->payload_at();
  ref.storage_id = page_of(record)->storage_id;
  ref.place = worker.name_of(record).word();
  ref.identity = identity_of(ref.storage_id, key);
  return ref;
}

/// Reads from a log record: the transaction itself has inserted or wholly overwritten the record.
/// May return out_of_range.
Status read_own_insert(const LogRecord& log, TreeRead& request);

/// Reads and registers the record, and applies the transaction's pending writes to the copy (R14).
/// Sets ref.payload_bytes. Returns not_found if the record is deleted.
Status read_tree_record(Transaction& txn, RecordRef& ref, std::span<const std::byte> key,
                        TreeRead& request);

}  // namespace atolldb
