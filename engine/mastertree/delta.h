// The delta tree of a Master-tree: records of cold ranges that have changed since the snapshot.
//
// A change of a cold record may copy the whole snapshot page up, which costs a page of the pool for
// one record. If the data does not fit in the pools, such a record goes to the storage's delta tree
// instead. It is a Master-tree of volatile pages without snapshot pages below them. Its records
// count instead of those of the snapshot, also if they are deleted. Rules R76 to R79.
#pragma once

#include <array>
#include <cstdint>

#include "engine/mastertree/descent.h"
#include "engine/mastertree/mastertree.h"
#include "engine/mastertree/tree_access.h"
#include "engine/transaction/transaction.h"
#include "shared/base/status.h"

namespace atolldb {

inline Link delta_link(StorageControl& storage) { return {&storage.delta_root, nullptr}; }

/// What the snapshot below a cold pointer has for a key.
struct ColdRecord {
  DualPointer* pointer = nullptr;
  VolatilePointer word{};  // word of the pointer when the snapshot page was found
  // False: the snapshot was not read, because the write does not depend on it. The members below
  // are then empty, and a record that is added is an open one (R82).
  bool is_read = false;
  bool exists = false;
  Vid vid{};                     // if it exists
  uint32_t payload_bytes = 0;    // 0 if it does not exist
  uint64_t max_removed_vid = 0;  // if it does not exist: of the page that lacks it (R43)
  std::array<std::byte, MasterTree::kMaxPayloadBytes> payload;

  /// The other keys of the snapshot that share the last slice of the key and end within it: their
  /// lengths, and the bytes that their records take in a page. All records of a slice must fit in a
  /// page.
  struct Neighbour {
    uint16_t key_bytes;
    uint32_t page_bytes;
  };
  std::array<Neighbour, kMaxSlotsOfOneSlice> neighbours;
  uint32_t neighbour_count = 0;

  /// Returns whether the pointer still has the word that the search for the key has found (R77,
  /// R82).
  bool is_current() const {
    return pointer != nullptr &&
           (pointer->load_acquire() == word ||
            (is_read ? fault::add_outdated_cold_records : fault::add_unmarked_open_records));
  }
};

/// Returns whether a write below this pointer goes to the delta tree.
bool writes_to_delta(const StorageControl& storage, const MissingPage& missing);

/// What `reserve_in_delta` does for a key that is absent.
enum class Absent : uint8_t {
  is_added,          // reserves a record for it
  is_added_blindly,  // adds an open record without a read of the snapshot, if that is possible
  stays,             // registers the absence, and returns not_found
};

/// Finds the record of `key` in the delta tree, or adds one: a copy of the snapshot's record, a
/// reserved record (Absent::is_added), or an open record (Absent::is_added_blindly). `cold`: where
/// a descent for the key has ended. Unless `absent` is Absent::stays, the record has room for
/// `payload_bytes`, and is no stable tombstone. The returned record may be open only with
/// Absent::is_added_blindly, or if this transaction has planned a write of it (R82). On ok,
/// `location` is the place of the record. Its record may be null; then the caller searches for the
/// key from the root again. Returns ok, not_found, snapshot_unreadable, or an abort status;
/// pointer_installed if this transaction has relied on the absence of changes below the pointer,
/// and has set the delta mark now (R76). May read from the device. REQUIRES: writes_to_delta; the
/// caller holds no lock.
Status reserve_in_delta(Transaction& txn, StorageControl& storage, const Location& cold, Bytes key,
                        uint32_t payload_bytes, Absent absent, Location& location);

/// Returns whether the record is open, and has an addition that a commit has left there (R83).
inline bool has_pending_add(Vid vid) { return vid.is_open() && vid.ordinal() != 0; }

/// Turns this transaction's addition to an open record into a write of the whole record, before an
/// operation that depends on the record (R83). REQUIRES: the transaction plans such an addition.
Status settle_add(Transaction& txn, StorageControl& storage, Bytes key);
/// Does so for all keys of the storage, before a scan.
Status settle_adds(Transaction& txn, StorageControl& storage);

/// Registers that the delta tree has no record of `key`, for which a search has ended at `location`
/// (R79, R108). `below`: version of the snapshot's record, or 0 if the snapshot lacks the key.
Status register_absent_from_delta(Transaction& txn, const Location& location, Bytes key, Vid below);

}  // namespace atolldb
