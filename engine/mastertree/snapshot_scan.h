// What a cursor remembers whose transaction reads a snapshot (rules R14, R18): the snapshot's next
// record and the own writes, which it merges by their keys.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/mastertree/key.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

/// A key and where its record is.
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
  bool is_at_end = false;   // the snapshot has no more records in the range
  bool has_ahead = false;   // `ahead` is the snapshot's next one, and not returned yet
  bool has_returned = false;
  ScannedRecord ahead;
  std::vector<std::byte> returned;  // key of the latest record that was returned
  std::vector<uint32_t> own;        // planned writes within the range, in order
  size_t own_at = 0;                // which is next
  uint32_t planned = 0;             // of the transaction's writes, those that were looked at
};

}  // namespace atolldb
