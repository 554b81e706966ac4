// What a worker records about its transactions, and how it hands that to another process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace atolldb::test {

/// Names a write: worker, its attempt, and the number of the write in it. 0 is the initial state.
///
///   63     56 55              16 15          0
///   [ worker ][ attempt 40     ][ write 16   ]
constexpr uint64_t make_value(uint64_t worker, uint64_t attempt, uint64_t write) {
  return (worker << 56) | (attempt << 16) | write;
}
/// The transaction that a value belongs to: its name without the number of the write.
constexpr uint64_t transaction_of(uint64_t value) { return value & ~uint64_t{0xffff}; }

/// Marks what is no value of a write.
inline constexpr uint64_t kAbsent = 0;

struct HistoryRead {
  uint64_t key;
  uint64_t value;      // kAbsent: not there (a tree) or never written (an array)
  uint64_t predicate;  // 1: learnt from a scan or a not-found look-up
};

/// The last write of a key in a transaction; earlier ones are recorded as intermediate.
struct HistoryWrite {
  uint64_t key;
  uint64_t value;
  uint64_t erases;        // 1: afterwards the key is absent
  uint64_t intermediate;  // 1: overwritten by the same transaction, nobody may see it
  uint64_t order;         // of the versions of the key: the VID that the log claims
};

/// Times are of one clock for all processes (CLOCK_MONOTONIC), in nanoseconds: `begin_ns` from
/// before the transaction began, `end_ns` from after its end.
struct HistoryTransaction {
  uint64_t name = 0;  // make_value(worker, attempt, 0)
  bool committed = false;
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
  std::vector<HistoryRead> reads;    // own writes excluded
  std::vector<HistoryWrite> writes;  // of aborted attempts, too
};

using History = std::vector<HistoryTransaction>;

/// "w3#17": worker 3, attempt 17.
std::string name_text(uint64_t value);

/// Plain numbers, for a pipe or file between processes on one machine.
std::vector<uint64_t> pack(const History& history);
/// Appends to `history`.
void unpack(const std::vector<uint64_t>& words, History& history);

}  // namespace atolldb::test
