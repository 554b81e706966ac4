// Reading a found Master-tree record into the transaction's sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/mastertree/record.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

struct TreeRead {
  uint32_t offset = 0;
  uint32_t count = 0;  // at most; with `exact`, out_of_range when the payload is shorter
  bool exact = false;
  void* out = nullptr;
  uint32_t payload_bytes = 0;  // result: whole length, own writes included
  Vid seen{};                  // result; is_elsewhere: nothing was read, look for the key again
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

/// Of what the transaction itself has inserted or overwritten as a whole: out_of_range.
Status read_own_insert(const LogRecord& log, TreeRead& request);

/// Reads and registers the record; own pending writes are laid over it (R14). not_found when it is
/// deleted. Sets ref.payload_bytes.
Status read_tree_record(Transaction& txn, RecordRef& ref, std::span<const std::byte> key,
                        TreeRead& request);

}  // namespace atolldb
