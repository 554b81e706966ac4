// Access to single records of a Master-tree for a transaction: reads of a record that was found,
// and the reservation of a record (R10). A reservation is the physical part of an insert and is not
// logged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/format/tree_record.h"
#include "engine/mastertree/descent.h"
#include "engine/transaction/transaction.h"
#include "shared/base/check.h"

namespace atolldb {

/// A read of one record: what to read, and the results.
struct TreeRead {
  uint32_t offset = 0;
  uint32_t count = 0;  // bytes to read at most; with `exact`, a shorter payload is out_of_range
  bool exact = false;
  bool wants_version = false;  // also set `seen` if a snapshot transaction reads its own write
  void* out = nullptr;
  uint32_t payload_bytes = 0;  // result: whole length, own writes included
  /// Result of a read in a snapshot that returns not_found: newest removed version of the page that
  /// lacks the record (R43).
  uint64_t max_removed_vid = 0;
  Vid seen{};  // result; if is_relocated, nothing was read, and the caller searches again
};

inline RecordRef make_ref(const WorkerContext& worker, TreeRecord* record,
                          std::span<const std::byte> key) {
  DCHECK(page_of(record)->type == PageType::mastertree_border);
  RecordRef ref;
  ref.record = &record->head;
  ref.payload_at = record->payload_at();
  ref.storage_id = page_of(record)->storage_id;
  ref.place = worker.name_of(record).word();
  ref.identity = identity_of(ref.storage_id, key);
  return ref;
}

/// Reads from the log record of an own write: the transaction has inserted or wholly overwritten
/// the record. May return out_of_range.
Status read_own_insert(const LogRecord& log, TreeRead& request);

/// Reads and registers the record, and applies the transaction's pending writes to the copy (R14).
/// Sets ref.payload_bytes. Returns not_found if the record is deleted.
Status read_tree_record(Transaction& txn, RecordRef& ref, std::span<const std::byte> key,
                        TreeRead& request);

/// What the write depends on that reserves the record.
enum class Reservation : uint8_t {
  dependent,  // the record, or its absence
  blind,      // nothing: the write replaces the whole record
};

/// Finds the record of `key`, or adds one with the VID (current epoch, 0, deleted). In a delta tree
/// it may also add a copy of the snapshot's record, or with Reservation::blind an open record
/// (R82). In all cases the record has room for `payload_bytes`. A stable tombstone becomes a
/// pending one (R12). A record that was added or made pending is in the read set on return. Splits
/// pages, adds layers and grows records as needed, and in a hash storage spreads full pages (R103).
/// Updates the transaction's page-version set (R13). Returns ok, or an abort status.
Status reserve(Transaction& txn, StorageControl& storage, Bytes key, uint32_t payload_bytes,
               Reservation reservation, Location& location);

/// Returns whether an insert may use the record without a change of the page.
bool is_ready(const TreeRecord* record, uint32_t payload_bytes);

enum class Step : uint8_t { done, again, full };
/// Whether a full page is divided, or left as it is.
enum class FullPage : uint8_t { divide, leave };

struct ColdRecord;

/// Returns the bytes that a record with a key of at most one slice takes in a border page, its slot
/// included.
inline uint32_t page_bytes_of(uint32_t payload_bytes) {
  return TreeRecord::bytes_with(8, payload_bytes) + kSlotBytes;
}

/// Makes one of the changes that lead to a record with enough room, under the lock of the page at
/// `location`. If `step` is `again`, the caller then searches for the key again. If it is `done`,
/// `location` is the place of the new record. With FullPage::leave, `step` is `full` if the page
/// has no room for another record; nothing was changed then. `cold`: null, or what the snapshot has
/// for the key, if the page is in a delta tree. The new record is a copy of it (R77). Holds no lock
/// on return. REQUIRES: kPagesPerRestructure pages are reserved.
Status change_page(Transaction& txn, Bytes key, uint32_t payload_bytes, Location& location,
                   Step& step, const ColdRecord* cold = nullptr,
                   FullPage full_page = FullPage::divide);

/// Installs a volatile page in place of the null word that was read (R1). The page is a copy of the
/// snapshot page. If there is no snapshot page, it is the tree's first border page, for records
/// with about `payload_bytes`. Returns ok if the caller is to search again, or pointer_installed if
/// the transaction depends on that word (R5).
Status install_missing(Transaction& txn, StorageControl& storage, const MissingPage& missing,
                       uint32_t payload_bytes);

/// Reserves records for the first of these keys, as long as they ascend and follow all other keys
/// of one page of the first layer. Stops at a key that has no room there or is longer than a slice.
/// Sets `done` to the number of reserved records. Sets `records[0 ... done)`, and `reserved` to the
/// VID of all of them. If `done` is 0, the caller reserves the first key with `reserve`.
Status reserve_run(Transaction& txn, StorageControl& storage, std::span<const Bytes> keys,
                   std::span<const Bytes> payloads, std::span<TreeRecord*> records, uint32_t& done,
                   Vid& reserved);

}  // namespace atolldb
