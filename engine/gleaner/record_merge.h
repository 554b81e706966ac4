// Merges sorted sequences of gleaned records, in memory or in sorted runs, storage by storage.
//
// Each input that has records of the current storage keeps a window: the sort keys of its next
// records. A round takes from all windows the keys up to a bound, and sorts them. A window is
// complete if no record of the storage follows its last key. The bound is the smallest last key of
// all windows that are not complete. So each record is read once, and each input is read in long
// stretches. No comparison per record chooses the next input.
//
// Records of equal position keep the order of their inputs.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/gleaner/gleaned_record.h"
#include "engine/gleaner/key_sorter.h"
#include "engine/gleaner/sorted_run.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

class RecordMerge {
 public:
  /// All windows of a storage together have about this many keys. So they and the sorter stay in
  /// the core's second-level cache.
  static constexpr size_t kWindowKeys = 8192;
  /// Minimum and maximum number of keys in a window. Because of the minimum, the windows of very
  /// many inputs have more than kWindowKeys keys together.
  static constexpr size_t kMinWindow = 16;
  static constexpr size_t kMaxWindow = 1024;
  /// Bytes per key: in a window, in the batch to sort, and in the sorter.
  static constexpr uint64_t kBytesPerKey = 2 * sizeof(SortKey) + KeySorter::footprint(1);
  static_assert(kBytesPerKey == 112);  // README.md names it

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
  struct Input {
    const std::byte* at = nullptr;  // the record after those of the window
    const std::byte* end = nullptr;
    std::unique_ptr<SortedRunReader> run;
  };
  /// An input that has no record of the current storage. Its next record is of `storage`.
  struct Waiting {
    uint32_t storage;
    uint32_t input;

    auto operator<=>(const Waiting&) const = default;
  };
  /// The next records of an input that has records of the current storage.
  struct Window {
    uint32_t input;
    uint32_t old_keys = 0;     // first keys with records in the chunk before the current one
    bool is_complete = false;  // no record of the storage follows its last key
    SortKey* room = nullptr;   // memory for `capacity` keys
    size_t capacity = 0;
    std::span<SortKey> keys = {};  // in `room`

    /// Removes the first `count` keys and returns them. They are valid until the window is filled.
    std::span<SortKey> take(size_t count);
  };

  Result<void> load();
  Result<bool> begin_storage();
  Result<void> fill_windows();
  Result<void> fill(Window& window);
  Result<bool> refill(Window& window);
  std::span<SortKey> next_round();
  std::span<SortKey> elide(std::span<SortKey> sorted, const SortKey* after);
  static bool has_whole_record(const Input& input);
  static std::unexpected<Error> no_record(const Input& input);
  void wait(uint32_t number, uint32_t storage);

  std::vector<Input> inputs_;
  std::vector<Waiting> waiting_;  // a heap: the first one has the lowest storage, then input
  uint32_t storage_ = 0;
  std::vector<Window> windows_;      // ascending inputs; those without keys are removed
  size_t key_count_ = 0;             // keys that `keys_`, `unsorted_` and `sorter_` have room for
  std::unique_ptr<SortKey[]> keys_;  // room for the keys of all windows
  std::unique_ptr<SortKey[]> unsorted_;  // room for the keys of a round
  std::unique_ptr<KeySorter> sorter_;
  bool has_started_ = false;
  std::span<const SortKey> batch_;  // part of a window, of unsorted_, or of the sorter's memory
  uint64_t elided_ = 0;
};

}  // namespace atolldb
