// State of a cursor whose transaction reads a snapshot (R14, R18). The cursor merges the snapshot's
// next record and the transaction's own writes by key.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/format/tree_key.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// A key and the place of its record.
struct ScannedRecord {
  std::array<std::byte, kMaxTreeKeyBytes + 8> key_bytes;
  uint32_t key_length = 0;
  uint32_t payload_bytes = 0;
  RecordRef ref;
  Vid seen;

  Bytes key() const { return Bytes(key_bytes).first(key_length); }
};

struct SnapshotScan {
  /// Compares in the direction of the scan.
  int order(Bytes left, Bytes right) const {
    const int ascending = compare_keys(left, right);
    return is_forward ? ascending : -ascending;
  }

  bool is_forward = true;
  bool is_at_end = false;   // the snapshot has no further record in the range
  bool has_ahead = false;   // `ahead` is the snapshot's next record, not returned yet
  bool has_record = false;  // the cursor has a current record
  bool has_returned = false;
  ScannedRecord ahead;
  std::vector<std::byte> returned;  // key of the last returned record
  std::vector<uint32_t> own;        // indexes of planned writes in the range, in scan order
  size_t own_at = 0;                // next entry of `own`
  uint32_t planned = 0;             // number of the transaction's writes already examined
};

}  // namespace atolldb
