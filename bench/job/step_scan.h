// Reads a range of a Master-tree with 64-bit keys. The range may have any length. Each serializable
// transaction reads a part that fits the read set.
//
// REQUIRES: no worker writes to the range meanwhile. So all transactions see the same records.
#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "bench/job/try.h"
#include "engine/mastertree/cursor.h"
#include "engine/transaction/run.h"

namespace atolldb::bench {

/// Returns the integer of a key made by `ordered_key`.
inline uint64_t key_value(Bytes key) {
  uint64_t value = 0;
  std::memcpy(&value, key.data(), sizeof(value));
  return __builtin_bswap64(value);
}

/// Owns the bounds of a scan over [low, high]. A KeyRange must outlive the cursor that uses it.
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
  std::array<std::byte, 8> low_;
  std::array<std::byte, 8> high_;
};

template <size_t kPayload>
struct ScannedRecord {
  uint64_t key;
  uint32_t payload_bytes;  // the whole length; bytes past kPayload are cut off
  std::array<std::byte, kPayload> payload;
};

/// Calls visit(const ScannedRecord<kPayload>&) once for each record of the range, in the order of
/// the tree. `number_of`: returns the 64-bit key of a stored key.
template <size_t kPayload, typename NumberOf, typename Visit>
Status scan_range_in_steps(Transaction& transaction, Backoff& backoff, const MasterTree& tree,
                           ScanRange range, NumberOf&& number_of, Visit&& visit) {
  // Each record takes one entry of the read set, whose capacity is a config key of at least 16. If
  // fewer records fit, the step shrinks.
  uint32_t step = 8'192;
  std::vector<ScannedRecord<kPayload>> seen;
  std::vector<std::byte> last;
  std::vector<std::byte> low;
  for (bool ended = false; !ended;) {
    const Status status = run(transaction, backoff, kMaxEpoch, [&](Transaction& txn) {
      seen.clear();
      ended = false;
      MasterTreeCursor cursor(tree, txn, range, true);
      while (seen.size() < step) {
        const Status next = cursor.next();
        if (next == Status::end_of_scan) {
          ended = true;
          return Status::ok;
        }
        if (next != Status::ok) return next;
        ScannedRecord<kPayload>& record = seen.emplace_back();
        record.key = number_of(cursor.key());
        record.payload_bytes = cursor.payload_bytes();
        last.assign(cursor.key().begin(), cursor.key().end());
        BENCH_TRY(cursor.get(record.payload.data(), kPayload));
      }
      return Status::ok;
    });
    if (status == Status::transaction_too_large && step > 1) {
      step /= 2;
      ended = false;
      continue;
    }
    if (status != Status::ok) return status;
    for (const ScannedRecord<kPayload>& record : seen) visit(record);
    if (seen.empty()) continue;
    low = last;
    range.low = low;
    range.has_low = true;
    range.low_inclusive = false;
  }
  return Status::ok;
}

/// Does the same for the keys [low, high] of a tree with 64-bit keys, in key order.
template <size_t kPayload, typename Visit>
Status scan_in_steps(Transaction& transaction, Backoff& backoff, const MasterTree& tree,
                     uint64_t low, uint64_t high, Visit&& visit) {
  const KeyRange keys(low, high);
  return scan_range_in_steps<kPayload>(transaction, backoff, tree, keys.range(), key_value,
                                       std::forward<Visit>(visit));
}

}  // namespace atolldb::bench
