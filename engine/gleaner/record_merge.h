// Merges sorted sequences of gleaned records, in memory or in sorted runs, with a loser tree: one
// comparison per level for each record.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/base/error.h"

namespace atolldb {

class RecordMerge {
 public:
  /// Adds records, which are in sort order.
  /// REQUIRES: their memory stays unchanged as long as the merge exists.
  void add(std::span<const std::byte> records);
  void add(std::unique_ptr<SortedRunReader> run);
  /// Starts the merge and makes the first record the current one. Call it once, after the last
  /// `add`.
  Result<void> start();

  /// Returns the current record, valid until the next `advance`, or null at the end. The merge
  /// elides a record if the next record of its key covers it (R35).
  const LogRecord* current() const { return current_; }
  /// Moves to the next record.
  /// REQUIRES: current() is not null.
  /// Errors: those of reading a sorted run; code corruption for bytes that are no records.
  Result<void> advance();

  uint64_t elided() const { return elided_; }

 private:
  static constexpr uint64_t kEnded = ~uint64_t{0};

  /// The current record of an input.
  struct Head {
    uint64_t storage;  // kEnded after the last record
    SortKey key;
  };
  struct Input {
    const std::byte* at = nullptr;
    const std::byte* end = nullptr;
    std::unique_ptr<SortedRunReader> run;
  };

  bool comes_before(uint32_t a, uint32_t b) const;
  Result<void> step(uint32_t input);
  Result<void> refill(uint32_t input);
  void replay(uint32_t input);

  std::vector<Input> inputs_;
  std::vector<Head> heads_;       // one per input
  std::vector<uint32_t> losers_;  // [1, inputs): for each match, the input that lost it
  uint32_t winner_ = 0;
  const LogRecord* current_ = nullptr;
  uint64_t elided_ = 0;
};

}  // namespace atolldb
