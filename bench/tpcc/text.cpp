#include "bench/tpcc/text.h"

#include <array>

#include "shared/base/check.h"

namespace atolldb::tpcc {

namespace {

/// Returns 128 different characters: digits, letters, and other characters of ISO 8859-1.
constexpr std::array<char, 128> make_alphabet() {
  std::array<char, 128> alphabet{};
  size_t at = 0;
  for (char c = '0'; c <= '9'; ++c) alphabet[at++] = c;
  for (char c = 'A'; c <= 'Z'; ++c) alphabet[at++] = c;
  for (char c = 'a'; c <= 'z'; ++c) alphabet[at++] = c;
  for (int c = 0xc0 - 2; at < alphabet.size(); ++c) alphabet[at++] = static_cast<char>(c);
  return alphabet;
}
constexpr std::array<char, 128> kAlphabet = make_alphabet();

constexpr std::array<std::string_view, 10> kSyllables = {"BAR", "OUGHT", "ABLE",  "PRI",   "PRES",
                                                         "ESE", "ANTI",  "CALLY", "ATION", "EING"};

}  // namespace

void fill_alphanumeric(Random& random, char* to, uint32_t count) {
  for (uint32_t i = 0; i < count;) {
    // Each random word gives nine characters of seven bits.
    uint64_t bits = random.next();
    for (uint32_t part = 0; part < 9 && i < count; ++part, bits >>= 7) {
      to[i++] = kAlphabet[bits & 127];
    }
  }
}

void fill_digits(Random& random, char* to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) to[i] = static_cast<char>('0' + random.uniform(0, 9));
}

Text<16> last_name(uint32_t number) {
  CHECK(number <= 999);
  Text<16> name{};
  size_t at = 0;
  for (const uint32_t digit : {number / 100, number / 10 % 10, number % 10}) {
    std::memcpy(name.bytes + at, kSyllables[digit].data(), kSyllables[digit].size());
    at += kSyllables[digit].size();
  }
  return name;
}

void zip_code(Random& random, Text<9>& zip) {
  fill_digits(random, zip.bytes, 4);
  std::memcpy(zip.bytes + 4, "11111", 5);
}

}  // namespace atolldb::tpcc
