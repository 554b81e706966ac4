// Log records in gleaned form, as mappers send them to reducers and reducers to composers:
// conversion, sort order, redundant records (R35), and sorted streams.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "engine/format/increment.h"
#include "engine/format/log_block.h"
#include "engine/format/log_record.h"
#include "engine/format/vid.h"
#include "engine/gleaner/snapshot_plan.h"
#include "engine/hooks/mutants.h"
#include "shared/base/check.h"
#include "shared/base/copy_bytes.h"
#include "shared/base/error.h"

namespace atolldb {

/// A log record in gleaned form is a LogRecord whose key sorts by its bytes (memcmp, a prefix
/// first) for all storage types:
///
///  array        the index, big-endian, 8 bytes
///  Master-tree  the key
///  sequential   [epoch 8][node 1][worker 1][ordinal 4][number of the append 2], big-endian: every
///               append has a key of its own
///
/// Sort order: (storage id, key, VID without flags). Lengths are multiples of 8 (LogRecord::bytes).
inline constexpr uint32_t kSequentialKeyBytes = 16;

/// Maximum length of a record in gleaned form: that of a record in a block, plus the key that a
/// sequential append gets.
inline constexpr uint32_t kMaxGleanedBytes = kLogBlockPayload + kSequentialKeyBytes + 8;
static_assert(kMaxGleanedBytes % 8 == 0);

/// Returns why `record` cannot belong to `storage`, or null if it can. Blocks have checksums, so
/// only a faulty program can have written a record that cannot. REQUIRES: the record is no filler.
const char* defect_in_storage(const LogRecord& record, const PlannedStorage& storage);

/// Returns the bytes of `record` in gleaned form.
inline uint32_t gleaned_bytes(const LogRecord& record) {
  const uint32_t key_bytes =
      record.type == LogType::append ? kSequentialKeyBytes : record.key_bytes;
  return LogRecord::bytes(key_bytes, record.payload_bytes);
}

inline std::string_view key_of(const LogRecord& record) {
  return {reinterpret_cast<const char*>(record.key()), record.key_bytes};
}

/// Returns whether a key belongs to a partition before the one that begins with `low`. A key
/// shorter than `low` is compared as if zeros followed it, as slices are.
inline bool is_before(std::string_view key, std::string_view low) {
  const size_t common = std::min(key.size(), low.size());
  const int order = common == 0 ? 0 : std::memcmp(key.data(), low.data(), common);
  if (order != 0) return order < 0;
  return std::ranges::any_of(low.substr(common), [](char byte) { return byte != '\0'; });
}

/// Position of a record in the sort order of its storage. A comparison of two positions seldom
/// reads the records.
///
///  first, second   bytes [0, 8) and [8, 16) of the key, big-endian, zeros after its end
///  third           [ min(key bytes, 17) : 6 ][ VID without flags : 58 ]
struct SortKey {
  uint64_t first;
  uint64_t second;
  uint64_t third;
  const LogRecord* record;

  static constexpr uint32_t kWholeBytes = 16;  // keys up to this length fit in the words above
  static constexpr uint32_t kLengthShift = 58;
  static constexpr uint64_t kIsLonger = uint64_t{kWholeBytes + 1} << kLengthShift;
  static_assert(kLengthShift + Vid::kOrdinalShift == 64);

  static SortKey of(const LogRecord& record) {
    const auto* key = reinterpret_cast<const unsigned char*>(record.key());
    const uint32_t bytes = record.key_bytes;
    DCHECK(reinterpret_cast<uintptr_t>(&record) % alignof(LogRecord) == 0);
    DCHECK(record.length >= LogRecord::bytes(bytes, record.payload_bytes));
    const uint64_t length = std::min(bytes, kWholeBytes + 1);
    return {word_of(key, bytes), bytes > 8 ? word_of(key + 8, bytes - 8) : 0,
            length << kLengthShift | record.vid >> Vid::kOrdinalShift, &record};
  }

  bool is_longer() const { return third >= kIsLonger; }

 private:
  /// Reads whole words, because keys are padded to 8 bytes. The padding may have any value.
  static uint64_t word_of(const unsigned char* bytes, uint32_t count) {
    if (count == 0) return 0;
    uint64_t word = 0;
    std::memcpy(&word, bytes, sizeof word);
    word = __builtin_bswap64(word);
    return count >= 8 ? word : word & ~(~uint64_t{0} >> 8 * count);
  }
};
static_assert(sizeof(SortKey) == 32);

/// Copies a record of `bytes` bytes. Most records have at most 128 bytes, so copy_bytes makes no
/// function call.
inline void copy_record(std::byte* into, const LogRecord& record, uint32_t bytes) {
  DCHECK(bytes % 8 == 0 && bytes <= kMaxGleanedBytes);
  copy_bytes(into, &record, bytes);
}

/// Writes `record`, an append from a block with `header`, in gleaned form to `into`. Stores its key
/// in `key`. If the function returned the key, the caller would read it from memory right after it
/// was stored, which is slow.
void write_gleaned_append(const LogRecord& record, const LogBlockHeader& header, std::byte* into,
                          SortKey& key);

/// Writes `record` in gleaned form to `into`, which has room for gleaned_bytes(record) bytes and is
/// aligned to 8. Returns the key of the written record.
/// REQUIRES: the record is no filler and no append, and defect_in_storage returns null.
inline SortKey write_gleaned(const LogRecord& record, StorageType type, std::byte* into) {
  DCHECK(record.type != LogType::filler && record.type != LogType::append);
  DCHECK(gleaned_bytes(record) <= kMaxGleanedBytes);
  DCHECK(reinterpret_cast<uintptr_t>(into) % alignof(LogRecord) == 0);
  // `length` is computed again, because a worker may have reserved more room than it used.
  const uint32_t bytes = LogRecord::bytes(record.key_bytes, record.payload_bytes);
  copy_record(into, record, bytes);
  auto* out = reinterpret_cast<LogRecord*>(into);
  out->length = bytes;
  // Reads the source, because loads from the copy would wait for its stores.
  SortKey key = SortKey::of(record);
  key.record = out;
  if (type == StorageType::array) {
    DCHECK(record.key_bytes == sizeof key.first);
    std::memcpy(out->key(), &key.first, sizeof key.first);
    key.first = __builtin_bswap64(key.first);
  }
  return key;
}

/// Compares the rest of two keys that are longer than kWholeBytes and equal up to there.
inline int compare_rest(const SortKey& a, const SortKey& b) {
  DCHECK(a.is_longer() && b.is_longer() && a.first == b.first && a.second == b.second);
  return key_of(*a.record)
      .substr(SortKey::kWholeBytes)
      .compare(key_of(*b.record).substr(SortKey::kWholeBytes));
}

/// Sort order within a storage: key, then VID without flags.
inline bool operator<(const SortKey& a, const SortKey& b) {
  if (a.first != b.first) return a.first < b.first;
  if (a.second != b.second) return a.second < b.second;
  if (a.is_longer() && b.is_longer()) [[unlikely]] {
    if (const int order = compare_rest(a, b); order != 0) return order < 0;
  }
  return a.third < b.third;
}

inline bool is_same_key(const SortKey& a, const SortKey& b) {
  return a.first == b.first && a.second == b.second &&
         a.third >> SortKey::kLengthShift == b.third >> SortKey::kLengthShift &&
         (!a.is_longer() || compare_rest(a, b) == 0);
}

/// Returns whether `later` makes `earlier`, a record of the same key, redundant (R35). An update is
/// redundant only if the later one is near, because an addition may lie between them (R83).
inline bool covers(const LogRecord& later, const LogRecord& earlier) {
  DCHECK(later.storage_id == earlier.storage_id && key_of(later) == key_of(earlier));
  if (later.type == LogType::insert || later.type == LogType::erase) return true;
  if (fault::elide_uncovered) return later.type == LogType::update;
  // An addition between the two depends on the earlier one. The distance rules that out (R83).
  const uint64_t distance = Vid(later.vid).epoch() - Vid(earlier.vid).epoch();
  if (distance >= kAddDistanceEpochs && !fault::elide_across_adds) return false;
  // An update neither creates nor erases a record. So it covers only updates within its own bytes.
  return later.type == LogType::update && earlier.type == LogType::update &&
         later.payload_offset <= earlier.payload_offset &&
         later.payload_offset + later.payload_bytes >=
             earlier.payload_offset + earlier.payload_bytes;
}

/// Compacts records of one storage. `sorted`: their keys in sort order. Moves the keys of the kept
/// records to the end of the span, in order, and returns them. A record is elided only if a kept
/// record covers it. So the last insert or erase of a key, and all records after it, are kept. All
/// sequential appends are kept.
std::span<SortKey> compact(std::span<SortKey> sorted);

/// A stream of gleaned records of one storage and one partition, in sort order, in batches.
class LogSource {
 public:
  virtual ~LogSource() = default;
  /// Returns the current batch, valid until the next call of `advance`, or no records at the end.
  std::span<const SortKey> batch() const { return batch_; }
  /// Moves to the next batch.
  /// REQUIRES: batch() is not empty.
  /// Errors: those of reading a sorted run.
  virtual Result<void> advance() = 0;

 protected:
  std::span<const SortKey> batch_;
};

}  // namespace atolldb
