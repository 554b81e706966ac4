// Texts of clause 4.3.2: random a-strings and n-strings, last names, "ORIGINAL".
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "bench/tpcc/random.h"

namespace atolldb::tpcc {

/// A column of fixed width; shorter text is padded with zero bytes.
template <uint32_t kBytes>
struct Text {
  char bytes[kBytes];

  static constexpr uint32_t capacity() { return kBytes; }
  std::string_view view() const { return {bytes, strnlen(bytes, kBytes)}; }
  void assign(std::string_view text) {
    const size_t count = text.size() < kBytes ? text.size() : kBytes;
    std::memcpy(bytes, text.data(), count);
    std::memset(bytes + count, 0, kBytes - count);
  }
  friend bool operator==(const Text& left, const Text& right) {
    return std::memcmp(left.bytes, right.bytes, kBytes) == 0;
  }
  /// Compares as strings do: the zero bytes of the padding sort before all characters.
  friend bool operator<(const Text& left, const Text& right) {
    return std::memcmp(left.bytes, right.bytes, kBytes) < 0;
  }
};

/// Fills `to` with `count` random characters out of 128 (clause 4.3.2.2).
void fill_alphanumeric(Random& random, char* to, uint32_t count);
void fill_digits(Random& random, char* to, uint32_t count);

/// Writes a random a-string [low .. high] and returns its length. `to` has room for `high` bytes.
inline uint32_t fill_a_string(Random& random, char* to, uint32_t low, uint32_t high) {
  const uint32_t count = random.uniform(low, high);
  fill_alphanumeric(random, to, count);
  return count;
}

template <uint32_t kBytes>
void a_string(Random& random, Text<kBytes>& text, uint32_t low, uint32_t high = kBytes) {
  const uint32_t count = fill_a_string(random, text.bytes, low, high);
  std::memset(text.bytes + count, 0, kBytes - count);
}

inline constexpr std::string_view kOriginal = "ORIGINAL";

/// Writes "ORIGINAL" at a random position of the text (clause 4.3.3.1: I_DATA, S_DATA).
template <uint32_t kBytes>
void plant_original(Random& random, Text<kBytes>& text) {
  const auto length = static_cast<uint32_t>(text.view().size());
  const uint32_t at = random.uniform(0, length - static_cast<uint32_t>(kOriginal.size()));
  std::memcpy(text.bytes + at, kOriginal.data(), kOriginal.size());
}

/// Returns whether the text contains "ORIGINAL". Compares the first and the last letter at 16
/// places at a time. Few texts have such a pair, so memmem, which makes a table in each call, is
/// called seldom.
template <uint32_t kBytes>
bool contains_original(const Text<kBytes>& text) {
  using Letters [[gnu::vector_size(16)]] = char;
  constexpr uint32_t kPlaces = kBytes - static_cast<uint32_t>(kOriginal.size()) + 1;
  static_assert(kPlaces >= sizeof(Letters));
  Letters pairs{};
  for (uint32_t place = 0; place < kPlaces; place += sizeof(Letters)) {
    // The last 16 places overlap with those before.
    const char* at = text.bytes + std::min<size_t>(place, kPlaces - sizeof(Letters));
    Letters first;
    Letters last;
    std::memcpy(&first, at, sizeof first);
    std::memcpy(&last, at + kOriginal.size() - 1, sizeof last);
    pairs |= (first == kOriginal.front()) & (last == kOriginal.back());
  }
  constexpr Letters kNone{};
  if (std::memcmp(&pairs, &kNone, sizeof pairs) == 0) return false;
  return memmem(text.bytes, kBytes, kOriginal.data(), kOriginal.size()) != nullptr;
}

/// Clause 4.3.2.3: returns three syllables for the digits of `number` (0..999), at most 15
/// characters.
Text<16> last_name(uint32_t number);

/// ZIP of clause 4.3.2.7: four random digits and "11111".
void zip_code(Random& random, Text<9>& zip);

}  // namespace atolldb::tpcc
