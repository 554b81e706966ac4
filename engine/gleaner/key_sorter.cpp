#include "engine/gleaner/key_sorter.h"

#include <immintrin.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

// For fewer keys, a sort by comparison is faster than clearing the counters of the radix sort.
constexpr size_t kFewKeys = 64;
// Largest digit in bits: kMaxDigit for kManyKeys or more keys, kSmallDigit for fewer. The counters
// of a digit fit in the first-level cache. With fewer keys, clearing the counters of large digits
// would take longer than another pass.
constexpr uint32_t kMaxDigit = 11;
constexpr uint32_t kSmallDigit = 8;
constexpr size_t kManyKeys = 2048;
constexpr uint32_t kMaxDigits = 8;  // enough for 64 bits

/// The bits in which keys differ from the first one.
struct Differences {
  uint64_t first = 0;
  uint64_t second = 0;
  uint64_t length = 0;

  explicit Differences(std::span<const SortKey> keys) {
    const SortKey& any = keys.front();
    uint64_t third = 0;
    for (const SortKey& key : keys) {
      first |= key.first ^ any.first;
      second |= key.second ^ any.second;
      third |= key.third ^ any.third;
    }
    length = third >> SortKey::kLengthShift;
  }

  uint32_t bits() const {
    return static_cast<uint32_t>(std::popcount(first) + std::popcount(second) +
                                 std::popcount(length));
  }
  /// Returns a code that sorts like the keys, except for their VIDs and the bytes from kWholeBytes
  /// on.
  /// REQUIRES: bits() < 64.
  uint64_t code_of(const SortKey& key) const {
    const uint64_t high = _pext_u64(key.first, first) << std::popcount(second);
    const uint64_t both = high | _pext_u64(key.second, second);
    return both << std::popcount(length) | _pext_u64(key.third >> SortKey::kLengthShift, length);
  }
};

/// Sorts by the `bits` bits from bit `low` on. The sort is stable. The result is in `codes`;
/// `spare` has the same size.
void sort_by_digits(std::span<uint64_t>& codes, std::span<uint64_t>& spare, uint32_t low,
                    uint32_t bits) {
  const uint32_t max_digit = codes.size() < kManyKeys ? kSmallDigit : kMaxDigit;
  const uint32_t digits = (bits + max_digit - 1) / max_digit;
  if (digits == 0) return;
  DCHECK(digits <= kMaxDigits && codes.size() == spare.size());
  const uint32_t width = (bits + digits - 1) / digits;
  const uint64_t mask = (uint64_t{1} << width) - 1;
  std::array<std::array<uint32_t, size_t{1} << kMaxDigit>, kMaxDigits> places;
  for (uint32_t digit = 0; digit < digits; ++digit) {
    std::fill_n(places[digit].begin(), size_t{1} << width, 0);
  }
  for (const uint64_t code : codes) {
    for (uint32_t digit = 0; digit < digits; ++digit) {
      ++places[digit][code >> (low + digit * width) & mask];
    }
  }
  for (uint32_t digit = 0; digit < digits; ++digit) {
    uint32_t sum = 0;
    for (uint64_t value = 0; value <= mask; ++value) {
      sum += std::exchange(places[digit][value], sum);
    }
    for (const uint64_t code : codes) {
      spare[places[digit][code >> (low + digit * width) & mask]++] = code;
    }
    std::swap(codes, spare);
  }
}

}  // namespace

KeySorter::KeySorter(uint64_t max_keys)
    : max_keys_(max_keys),
      sorted_(std::make_unique_for_overwrite<SortKey[]>(max_keys)),
      codes_(std::make_unique_for_overwrite<uint64_t[]>(max_keys)),
      spare_(std::make_unique_for_overwrite<uint64_t[]>(max_keys)) {
  CHECK(max_keys <= UINT32_MAX);  // the counters of digits have 32 bits
}

std::span<SortKey> KeySorter::sort(std::span<SortKey> keys) {
  CHECK(keys.size() <= max_keys_);
  if (keys.empty()) return keys;
  const Differences differences(keys);
  const uint32_t bits = differences.bits();
  const auto place_bits = static_cast<uint32_t>(std::bit_width(keys.size()));
  if (keys.size() < kFewKeys || bits + place_bits > 64) {
    std::stable_sort(keys.begin(), keys.end());
    return keys;
  }
  std::span<uint64_t> codes(codes_.get(), keys.size());
  std::span<uint64_t> spare(spare_.get(), keys.size());
  bool is_sorted = true;
  for (size_t i = 0; i < keys.size(); ++i) {
    DCHECK(i >> place_bits == 0);
    codes[i] = differences.code_of(keys[i]) << place_bits | i;
    is_sorted = is_sorted && (i == 0 || codes[i - 1] < codes[i]);
  }
  if (!is_sorted) sort_by_digits(codes, spare, place_bits, bits);
  return put_in_place(keys, codes, place_bits);
}

std::span<SortKey> KeySorter::put_in_place(std::span<const SortKey> keys, std::span<uint64_t> codes,
                                           uint32_t place_bits) {
  const uint64_t place_mask = (uint64_t{1} << place_bits) - 1;
  std::span<SortKey> sorted(sorted_.get(), keys.size());
  for (size_t begin = 0; begin < codes.size();) {
    const uint64_t code = codes[begin] >> place_bits;
    size_t end = begin;
    bool is_ascending = true;
    // Records of one key are in arrival order. The records of one worker arrive in the order of
    // their VIDs. Those of several workers may not.
    for (; end < codes.size() && codes[end] >> place_bits == code; ++end) {
      sorted[end] = keys[codes[end] & place_mask];
      is_ascending = is_ascending && (end == begin || !(sorted[end] < sorted[end - 1]));
    }
    if (!is_ascending) {
      // Places break ties, so the sort is stable.
      const auto group = codes.subspan(begin, end - begin);
      std::ranges::sort(group, [&](uint64_t a, uint64_t b) {
        const SortKey& left = keys[a & place_mask];
        const SortKey& right = keys[b & place_mask];
        return left < right || (!(right < left) && a < b);
      });
      for (size_t i = begin; i < end; ++i) sorted[i] = keys[codes[i] & place_mask];
    }
    begin = end;
  }
  DCHECK(std::is_sorted(sorted.begin(), sorted.end()));
  return sorted;
}

}  // namespace atolldb
