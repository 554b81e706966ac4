// Recorded history of a worker's transactions, and its transfer to another process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atolldb::test {

/// Returns the value that names a write. The value has the worker, its attempt, and the number of
/// the write in the attempt. The value 0 is the initial state.
///
///   63     56 55              16 15          0
///   [ worker ][ attempt 40     ][ write 16   ]
constexpr uint64_t make_value(uint64_t worker, uint64_t attempt, uint64_t write) {
  return (worker << 56) | (attempt << 16) | write;
}
/// Returns the name of the transaction that wrote a value: the value without the number of the
/// write.
constexpr uint64_t transaction_of(uint64_t value) { return value & ~uint64_t{0xffff}; }

/// Stands for an absent key; no write has this value.
inline constexpr uint64_t kAbsent = 0;

struct HistoryRead {
  uint64_t key;
  uint64_t value;      // kAbsent: not found (tree) or never written (array)
  uint64_t predicate;  // 1: from a scan or a not-found look-up
};

/// The last write of a key in a transaction. Earlier writes of the key are recorded as
/// intermediate.
struct HistoryWrite {
  uint64_t key;
  uint64_t value;
  uint64_t erases;        // 1: the key is absent afterwards
  uint64_t intermediate;  // 1: overwritten by the same transaction, so no reader may see it
  uint64_t order;         // position among the key's versions: the VID in the log
};

/// Times are nanoseconds of one clock for all processes (CLOCK_MONOTONIC). `begin_ns` is taken
/// before the transaction begins, `end_ns` after its end.
struct HistoryTransaction {
  uint64_t name = 0;  // make_value(worker, attempt, 0)
  bool committed = false;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<HistoryRead> reads;    // without reads of own writes
  std::vector<HistoryWrite> writes;  // also those of aborted attempts
};

using History = std::vector<HistoryTransaction>;

/// Returns the name of a transaction: "w3#17" for attempt 17 of worker 3.
std::string name_text(uint64_t value);

/// Packs a history into plain numbers, for a pipe or file between processes of one machine.
std::vector<uint64_t> pack(const History& history);
/// Appends the packed transactions to `history`.
void unpack(const std::vector<uint64_t>& words, History& history);

}  // namespace atolldb::test
