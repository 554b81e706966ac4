// Ranges of integer keys for cursors.
#pragma once

#include "bench/tpcc/keys.h"
#include "engine/mastertree/cursor.h"

namespace atolldb::tpcc {

/// Owns the bounds of a scan over [low, high]; it must outlive the cursor.
class KeyRange {
 public:
  KeyRange(uint64_t low, uint64_t high) : low_(ordered_key(low)), high_(ordered_key(high)) {}

  ScanRange range() const {
    ScanRange range;
    range.low = low_;
    range.has_low = true;
    range.high = high_;
    range.has_high = true;
    range.high_inclusive = true;
    return range;
  }

 private:
  Key low_;
  Key high_;
};

}  // namespace atolldb::tpcc
