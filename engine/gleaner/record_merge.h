// Merges sorted sequences of gleaned records, in memory or in sorted runs, storage by storage.
//
// Only the inputs that have records of the current storage take part. They meet in a loser tree,
// whose places hold the first 16 bytes of keys. So a comparison seldom reads a record. While one
// input stays ahead of all others, the merge compares its records with a bound only.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

class RecordMerge {
 public:
  /// Adds records, which are in sort order.
  /// REQUIRES: their memory stays unchanged as long as the merge exists.
  void add(std::span<const std::byte> records);
  void add(std::unique_ptr<SortedRunReader> run);
  /// Starts the merge and loads the first batch. Call it once, after the last `add`.
  /// Errors: those of `take`.
  Result<void> start();

  /// Returns the next records, all of one storage, in sort order; no records at the end. They are
  /// valid until the next `take`. The merge elides a record if the next record of its key covers
  /// it (R35).
  std::span<const SortKey> batch() const { return batch_; }
  /// Returns the storage of the batch.
  /// REQUIRES: the batch is not empty.
  uint32_t storage() const {
    DCHECK(!batch_.empty());
    return storage_;
  }
  /// Removes the first `count` records from the batch. Loads the next batch if none remain.
  /// REQUIRES: the batch has at least one record, and at least `count` records.
  /// Errors: those of reading a sorted run; code corruption for bytes that are no records.
  Result<void> take(size_t count) {
    DCHECK(!batch_.empty() && count <= batch_.size());
    batch_ = batch_.subspan(count);
    return batch_.empty() ? load() : Result<void>();
  }

  uint64_t elided() const { return elided_; }

 private:
  static constexpr size_t kMaxBatch = 64;
  __extension__ using Prefix = unsigned __int128;  // bytes [0, 16) of a key, big-endian

  struct Input {
    const std::byte* at = nullptr;  // the record after the head
    const std::byte* end = nullptr;
    std::unique_ptr<SortedRunReader> run;
    SortKey head = kNoRecord;
    uint32_t player = 0;  // its number in the loser tree
  };
  /// An input that has no record of the current storage. It begins with a record of `storage`.
  struct Waiting {
    uint32_t storage;
    uint32_t input;

    auto operator<=>(const Waiting&) const = default;
  };
  struct Player {
    Prefix prefix;
    uint64_t input;
  };
  /// The head of an input without further records of the storage. It loses against all others.
  static constexpr SortKey kNoRecord = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}, nullptr};

  static Prefix prefix_of(const SortKey& key) { return Prefix{key.first} << 64 | key.second; }
  bool wins_tie(uint64_t a, uint64_t b) const;
  bool wins(const Player& a, const Player& b) const {
    return a.prefix != b.prefix ? a.prefix < b.prefix : wins_tie(a.input, b.input);
  }
  Result<void> load();
  Result<bool> begin_storage();
  Result<void> step(uint32_t number);
  Result<void> refill(Input& input);
  static bool has_whole_record(const Input& input);
  static std::unexpected<Error> no_record(const Input& input);
  void wait(uint32_t number, uint32_t storage);
  void replay();

  std::vector<Input> inputs_;
  std::vector<Waiting> waiting_;  // a heap: the first one has the lowest storage, then input
  uint32_t storage_ = 0;
  size_t players_ = 0;          // inputs in the loser tree
  std::vector<Player> losers_;  // [1, players_): for each match, the player that lost it
  Player winner_ = {};
  // If the winner's next record has a lower prefix than this, it wins again without a match.
  Prefix bound_ = 0;
  bool has_started_ = false;
  bool has_refilled_ = false;  // an input got a new chunk since the batch began
  std::array<SortKey, kMaxBatch> keys_;
  std::span<const SortKey> batch_;  // part of keys_
  uint64_t elided_ = 0;
};

}  // namespace atolldb
