// The end of a command's output: at the limit, past it, and without the bytes that no message may
// have.
#include "shared/process/output_tail.h"

#include <gtest/gtest.h>

#include <random>

#include "shared/base/base64.h"
#include "tests/support/seed.h"

namespace atolldb::test {
namespace {

std::string tail_of(std::string_view bytes) {
  OutputTail tail;
  tail.add(bytes);
  return tail.text();
}

TEST(OutputTail, HasAllUpToTheLimitAndTheEndPastIt) {
  const std::string full = "b" + std::string(kCommandOutputBytes - 2, 'x') + "e";
  EXPECT_EQ(tail_of(full), full);
  EXPECT_EQ(tail_of("a" + full), "..." + full);
  OutputTail tail;
  for (const char c : "a" + full) tail.add({&c, 1});
  EXPECT_EQ(tail.text(), "..." + full);
}

TEST(OutputTail, OfRandomPartsIsTheEndOfTheWhole) {
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < rounds(200, 20'000); ++round) {
    OutputTail tail;
    std::string all;
    while (all.size() < kCommandOutputBytes * (random() % 4)) {
      const std::string part(random() % (kCommandOutputBytes * 3 / 2),
                             static_cast<char>('a' + random() % 26));
      tail.add(part);
      all += part;
    }
    const bool is_cut = all.size() > kCommandOutputBytes;
    const std::string end = is_cut ? all.substr(all.size() - kCommandOutputBytes) : all;
    ASSERT_EQ(tail.text(), (is_cut ? "..." : "") + end);
  }
}

TEST(OutputTail, IsOneLineOfUtf8WhateverIsWritten) {
  EXPECT_EQ(tail_of("\n cp: no space\n\x1b[31mleft\r\n\n"), "cp: no space  [31mleft");
  EXPECT_EQ(tail_of("f\xc3\xbcr"), "f\xc3\xbcr");
  EXPECT_EQ(tail_of("f\xfcr"), "f?r");
  EXPECT_EQ(tail_of("\n \t\n"), "");
  // The limit cuts off the first byte of a two-byte character. The second byte is removed, too.
  const std::string rest(kCommandOutputBytes - 1, 'x');
  EXPECT_EQ(tail_of("\xc3\xbc" + rest), "..." + rest);
  std::mt19937_64 random(seed());
  for (uint64_t round = 0; round < rounds(200, 20'000); ++round) {
    std::string bytes(random() % (2 * kCommandOutputBytes), '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_TRUE(is_utf8(tail_of(bytes)));
  }
}

}  // namespace
}  // namespace atolldb::test
