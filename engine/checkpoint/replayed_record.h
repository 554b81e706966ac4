// Writes the replayed versions of a record into volatile pages: the newest version wins, whatever
// the order (R92). Writes no log. Source: [SILOR14] section 5.2.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <span>

#include "engine/format/log_record.h"
#include "engine/format/tree_key.h"
#include "engine/format/vid.h"
#include "engine/transaction/transaction.h"
#include "shared/base/error.h"
#include "shared/base/status.h"
#include "shared/memory/control_layout.h"

namespace atolldb {

/// The effect of a replayed version.
enum class Replayed : uint8_t {
  inserted,     // the record did not exist
  overwritten,  // an older version of the record was there
  older,        // skipped: the record is at least as new
};

/// Returns the error of a replay that cannot write a record of the storage.
std::unexpected<Error> replay_failed(uint32_t storage_id, Status status);

/// Finds and writes records for one thread of a replay. Its transaction only finds and reserves
/// records: it never commits.
class RecordWriter {
 public:
  /// `txn`: of the same worker, without a log. REQUIRES: both outlive the writer.
  explicit RecordWriter(Transaction& txn) : txn_(&txn) {}
  ~RecordWriter() { end(); }
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;

  /// Stores a whole record of a tree. Errors: volatile_pool_exhausted, cluster_failed.
  Status put(StorageControl& storage, Bytes key, Vid vid, Bytes payload, Replayed& result);
  /// Stores a tombstone, even if the key is absent: it may have to beat an older version that
  /// comes later (R93).
  Status put_tombstone(StorageControl& storage, Bytes key, Vid vid, Replayed& result);
  /// Stores a whole record of an array. REQUIRES: `index` and the length of the payload fit.
  Status put(StorageControl& storage, uint64_t index, Vid vid, Bytes payload, Replayed& result);

  /// Stores the first of these whole records of a Master-tree, under one lock of their page. They
  /// are stored as long as their keys ascend and follow all keys of the page, as those of a
  /// checkpoint do. Sets `done` to their number, which may be 0, and `results[0 ... done)`. A
  /// record without a result is not stored, because it was moved meanwhile: the caller stores it by
  /// `put`. REQUIRES: there are at most kBatch records. Each has the type `insert`, and a key and a
  /// payload that the tree can have.
  Status put_run(StorageControl& storage, std::span<const LogRecord* const> records,
                 std::span<std::optional<Replayed>> results, size_t& done);

  /// Number of records whose cache misses overlap.
  static constexpr size_t kBatch = 16;
  /// A record that is searched for soon.
  struct Sought {
    StorageControl* storage = nullptr;
    Bytes key;
  };
  /// Prefetches the pages of these records, for the next calls. A hint. REQUIRES: there are at most
  /// kBatch records, of trees and arrays, and each has a key that its storage can have.
  void prefetch(std::span<const Sought> records);

  /// Returns the version of the record, or 0 if there is none. Tombstones count. A record that is
  /// moved meanwhile is searched for again.
  uint64_t version_of(StorageControl& storage, Bytes key);

  /// Changes an existing record in place. `apply` gets the version of the record and its payload,
  /// and returns the new version, at least the old one. Sets `exists` to false, and does not call
  /// `apply`, if the record is absent or a tombstone. `vid` is then its VID, or 0.
  using Change = std::function<Vid(Vid version, std::span<std::byte> payload)>;
  Status change(StorageControl& storage, Bytes key, const Change& apply, bool& exists, Vid& vid);

  /// Ends the current transaction, which releases the begin epoch. Call it before a wait.
  void end();

 private:
  struct Place {
    RecordHead* head = nullptr;
    uint16_t payload_at = 0;
    uint32_t capacity = 0;  // bytes of payload that fit
    bool is_tree = false;
  };

  Status begin();
  void prefetch_in(StorageControl& storage, std::span<const Bytes> keys);
  /// Sets `place` to the record, which has room for `payload_bytes`. Adds it if it is absent and
  /// `adds` is true, else `place.head` stays null. Sets `is_older` if the record is as new as
  /// `version`, and may then leave it without room.
  Status find(StorageControl& storage, Bytes key, uint32_t payload_bytes, uint64_t version,
              bool adds, Place& place, bool& is_older);
  Status find_in_tree(StorageControl& storage, Bytes key, uint32_t payload_bytes, uint64_t version,
                      bool adds, Place& place, bool& is_older);
  Status find_in_array(StorageControl& storage, Bytes key, Place& place);
  Status store(StorageControl& storage, Bytes key, Vid vid, Bytes payload, Replayed& result);
  /// Stores the version under the record's lock. Sets `is_moved` if the record was moved before the
  /// lock was taken: nothing was stored.
  Status store_at(const Place& place, Vid vid, Bytes payload, Replayed& result, bool& is_moved);

  /// Number of records that one transaction reserves. Its access sets stay small.
  static constexpr uint32_t kRecordsPerTransaction = 64;

  Transaction* txn_;
  uint32_t uses_ = 0;  // of the current transaction
};

/// Returns the key with which the log names a record of an array.
inline std::array<std::byte, 8> array_key(uint64_t index) {
  std::array<std::byte, 8> key;
  std::memcpy(key.data(), &index, sizeof index);
  return key;
}

}  // namespace atolldb
