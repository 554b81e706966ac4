// Ordered scan of a Master-tree, forward or backward (foedus.txt appendix C; rules R6, R12, R14).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "engine/mastertree/mastertree.h"

namespace atolldb {

/// Bounds of a scan. An absent bound is unbounded.
struct ScanRange {
  Bytes low{};
  bool has_low = false;
  bool low_inclusive = true;
  Bytes high{};
  bool has_high = false;
  bool high_inclusive = false;
};

/// Sees the own writes of its transaction. Registers every page it looks at and every record, dead
/// ones included. The range's bytes must outlive the cursor.
class MasterTreeCursor {
 public:
  MasterTreeCursor(const MasterTree& tree, Transaction& txn, const ScanRange& range, bool forward);

  /// Moves to the next existing record; end_of_scan when there is none.
  Status next();

  /// Of the current record; valid until the next call of next().
  Bytes key() const;
  uint32_t payload_bytes() const;
  /// Copies at most `capacity` bytes of the payload.
  Status get(void* out, uint32_t capacity);
  const RecordRef& ref() const;
};

}  // namespace atolldb
