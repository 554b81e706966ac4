// Hexadecimal text of every byte, and texts that are none.
#include "shared/base/hex.h"

#include <gtest/gtest.h>

namespace atolldb {
namespace {

TEST(HexTest, EveryByteHasTwoLowerCaseDigitsAndComesBack) {
  std::vector<std::byte> all;
  for (int value = 0; value < 256; ++value) all.push_back(static_cast<std::byte>(value));
  const std::string text = to_hex(all);
  EXPECT_EQ(text.size(), 512u);
  EXPECT_TRUE(text.starts_with("000102030405060708090a0b0c0d0e0f10"));
  EXPECT_TRUE(text.ends_with("fdfeff"));
  EXPECT_EQ(from_hex(text), all);
  EXPECT_EQ(to_hex({}), "");
  EXPECT_EQ(from_hex(""), std::vector<std::byte>());
}

TEST(HexTest, TakesDigitsOfEitherCaseAndNothingElse) {
  EXPECT_EQ(from_hex("aFA0"), (std::vector{std::byte{0xaf}, std::byte{0xa0}}));
  for (const char* text : {"0", "abc", "0g", "g0", " 00", "0x00", "00 ", "-1", "+1", "\xff\xff"}) {
    EXPECT_EQ(from_hex(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace atolldb
