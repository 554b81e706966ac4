// Log records in gleaned form (log_source.h): how they are made, sorted, and which one makes an
// earlier one superfluous (rule R35).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "engine/gleaner/glean_plan.h"
#include "engine/gleaner/log_source.h"
#include "engine/log/log_block.h"
#include "engine/log/log_record.h"
#include "engine/mutants.h"
#include "engine/transaction/vid.h"

namespace atolldb {

/// No record in gleaned form is longer: in a block it is at most kLogBlockPayload, and a sequential
/// append gets a key.
inline constexpr uint32_t kMaxGleanedBytes = kLogBlockPayload + kSequentialKeyBytes + 8;
static_assert(kMaxGleanedBytes % 8 == 0);

/// Why `record`, no filler, cannot be one of `storage`'s; null: it can. Blocks are checksummed, so
/// such a record was written by a faulty program.
const char* defect_in_storage(const LogRecord& record, const GleanStorage& storage);

/// Bytes of `record` in gleaned form.
inline uint32_t gleaned_bytes(const LogRecord& record) {
  const uint32_t key_bytes =
      record.type == LogType::append ? kSequentialKeyBytes : record.key_bytes;
  return LogRecord::bytes(key_bytes, record.payload_bytes);
}

/// Writes `record` of a block with `header` in gleaned form to `into`, which has room for
/// gleaned_bytes and is aligned to 8. REQUIRES: no filler, no defect_in_storage.
LogRecord* write_gleaned(const LogRecord& record, StorageType type, const LogBlockHeader& header,
                         std::byte* into);

inline std::string_view key_of(const LogRecord& record) {
  return {reinterpret_cast<const char*>(record.key()), record.key_bytes};
}

/// Whether a key belongs to a partition before the one that begins with `low`: keys that end before
/// `low` does count as if zeros followed, as slices do.
inline bool is_before(std::string_view key, std::string_view low) {
  const size_t common = std::min(key.size(), low.size());
  const int order = common == 0 ? 0 : std::memcmp(key.data(), low.data(), common);
  if (order != 0) return order < 0;
  return std::ranges::any_of(low.substr(common), [](char byte) { return byte != '\0'; });
}

/// A record's place in the sort order among those of its storage, so that comparing two seldom has
/// to look at the records.
///
///   first, second   bytes [0, 8) and [8, 16) of the key, big-endian, zeros behind its end
///   third           [ min(key bytes, 17) : 6 ][ VID without flags : 58 ]
struct SortKey {
  uint64_t first;
  uint64_t second;
  uint64_t third;
  const LogRecord* record;

  static constexpr uint32_t kWholeBytes = 16;  // keys up to this length are in the words above
  static constexpr uint32_t kLengthShift = 58;
  static constexpr uint64_t kIsLonger = uint64_t{kWholeBytes + 1} << kLengthShift;
  static_assert(kLengthShift + Vid::kOrdinalShift == 64);

  static SortKey of(const LogRecord& record) {
    const auto* key = reinterpret_cast<const unsigned char*>(record.key());
    const uint32_t bytes = record.key_bytes;
    const uint64_t length = std::min(bytes, kWholeBytes + 1);
    return {word_of(key, bytes), bytes > 8 ? word_of(key + 8, bytes - 8) : 0,
            length << kLengthShift | record.vid >> Vid::kOrdinalShift, &record};
  }

  bool is_longer() const { return third >= kIsLonger; }

 private:
  static uint64_t word_of(const unsigned char* bytes, uint32_t count) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, std::min(count, 8u));
    return __builtin_bswap64(word);
  }
};
static_assert(sizeof(SortKey) == 32);

/// Of two keys longer than kWholeBytes, equal so far.
inline int compare_rest(const SortKey& a, const SortKey& b) {
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

/// Whether `later` makes `earlier`, a record of the same key, superfluous (R35). If it does, it
/// also does so for all that `earlier` covers.
inline bool covers(const LogRecord& later, const LogRecord& earlier) {
  if (later.type == LogType::insert || later.type == LogType::erase) return true;
  if (mutant(Mutant::leave_out_uncovered)) return later.type == LogType::update;
  // An update leaves what it does not change, and whether the record exists.
  return later.type == LogType::update && earlier.type == LogType::update &&
         later.payload_offset <= earlier.payload_offset &&
         later.payload_offset + later.payload_bytes >=
             earlier.payload_offset + earlier.payload_bytes;
}

}  // namespace atolldb
