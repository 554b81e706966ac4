// Formats of keys and values: each type, its limits, wrong texts, and random bytes both ways.
#include "ops/shell/value_format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/seed.h"

namespace atolldb::shell {
namespace {

using Bytes = std::vector<std::byte>;
using Part = ValueFormat::Part;

ValueFormat format(const std::string& text, Part part = Part::value) {
  auto parsed = ValueFormat::parse(text, part);
  EXPECT_TRUE(parsed) << text << ": " << parsed.error();
  return parsed ? *std::move(parsed) : ValueFormat::plain(part);
}

/// Returns the bytes as hexadecimal digits, or the error.
std::string encoded(const std::string& type, const std::string& text, Part part = Part::value) {
  const auto bytes = format(type, part).encode(text);
  if (!bytes) return "error: " + bytes.error();
  return *format("hex").decode(*bytes);
}

std::string decoded(const std::string& type, const std::string& hex, Part part = Part::value) {
  const auto text = format(type, part).decode(*format("hex").encode(hex));
  return text ? *text : "error: " + text.error();
}

std::string parse_error(const std::string& text, Part part = Part::value) {
  const auto parsed = ValueFormat::parse(text, part);
  return parsed ? "no error" : parsed.error();
}

TEST(ValueFormat, TextIsUtf8WithEscapesForAllOtherBytes) {
  EXPECT_EQ(encoded("text", "ab"), "6162");
  EXPECT_EQ(encoded("text", ""), "");
  EXPECT_EQ(encoded("text", "a\\x00\\n\\t\\r\\\\"), "61000a090d5c");
  EXPECT_EQ(decoded("text", "61000a090d5c"), "a\\x00\\n\\t\\r\\\\");
  EXPECT_EQ(decoded("text", "c3a4"), "\xc3\xa4");
  EXPECT_EQ(decoded("text", "c3"), "\\xc3") << "an incomplete character";
  EXPECT_EQ(decoded("text", "1b5b"), "\\x1b[") << "no escape sequence reaches a terminal";
  EXPECT_EQ(decoded("text", "c29b"), "\\xc2\\x9b") << "a control character of two bytes";
  EXPECT_EQ(encoded("text", "\\q"),
            "error: \"\\\\q\": unknown escape: use \\\\, \\n, \\r, \\t or \\xNN");
  EXPECT_EQ(encoded("text", "\\x1"), "error: \"\\\\x1\": two hexadecimal digits must follow \\x");
  EXPECT_EQ(encoded("text", "end\\"),
            "error: \"\\\\\": unknown escape: use \\\\, \\n, \\r, \\t or \\xNN");
}

TEST(ValueFormat, NumbersAreLittleEndianInValuesAndBigEndianInKeys) {
  EXPECT_EQ(encoded("u32", "258"), "02010000");
  EXPECT_EQ(encoded("u32", "258", Part::key), "00000102");
  EXPECT_EQ(encoded("i16", "-2"), "feff");
  EXPECT_EQ(decoded("i16", "feff"), "-2");
  EXPECT_EQ(decoded("u64", "ffffffffffffffff"), "18446744073709551615");
  EXPECT_EQ(decoded("i64", "ffffffffffffffff"), "-1");
  EXPECT_EQ(encoded("f64", "1.5"), "000000000000f83f");
  EXPECT_EQ(decoded("f32", "0000c03f"), "1.5");
  EXPECT_EQ(parse_error("i64", Part::key).find("\"i64\": numbers in keys are unsigned"), 0u);
  EXPECT_EQ(parse_error("f64", Part::key).find("\"f64\": numbers in keys are unsigned"), 0u);
}

TEST(ValueFormat, LimitsOfNumbersHoldAtTheirValueAndFailPastIt) {
  EXPECT_EQ(encoded("u8", "255"), "ff");
  EXPECT_EQ(encoded("u8", "256"), "error: \"256\": is outside of the range of u8");
  EXPECT_EQ(encoded("i8", "-128"), "80");
  EXPECT_EQ(encoded("i8", "-129"), "error: \"-129\": is outside of the range of i8");
  EXPECT_EQ(encoded("i8", "128"), "error: \"128\": is outside of the range of i8");
  EXPECT_EQ(encoded("u64", "18446744073709551616"),
            "error: \"18446744073709551616\": is outside of the range of u64");
  EXPECT_EQ(encoded("u8", "-1"), "error: \"-1\": is not a number of type u8");
  EXPECT_EQ(encoded("u8", "1x"), "error: \"1x\": is not a number of type u8");
  EXPECT_EQ(encoded("u8", ""), "error: \"\": is not a number of type u8");
  EXPECT_EQ(encoded("f32", "1e99"), "error: \"1e99\": is outside of the range of f32");
}

TEST(ValueFormat, FieldsFollowEachOther) {
  EXPECT_EQ(encoded("u8,char(3),text", "1,ab,x,y"), "01616200782c79");
  EXPECT_EQ(decoded("u8,char(3),text", "01616200782c79"), "1,ab,x,y");
  EXPECT_EQ(decoded("char(2),u8", "2c6107"), "\\x2ca,7") << "a comma within a field";
  EXPECT_EQ(encoded("char(2),u8", "\\x2ca,7"), "2c6107");
  EXPECT_EQ(encoded("bytes(2)", "0aFF"), "0aff");
  EXPECT_EQ(encoded("bytes(2)", "0a"), "error: \"0a\": has 1 bytes, bytes(2) takes 2");
  EXPECT_EQ(encoded("char(2)", "abc"), "error: \"abc\": has 3 bytes, the limit of char(2) is 2");
  EXPECT_EQ(encoded("u8,u8", "1"), "error: \"1\": has 1 fields, the format \"u8,u8\" has 2");
  EXPECT_EQ(encoded("u8,u8", "1,2,3"), "error: \"2,3\": is not a number of type u8");
  EXPECT_NE(decoded("u8,u8", "01").find("a value of 1 bytes does not have the format"),
            std::string::npos);
  EXPECT_NE(decoded("u8", "0102").find("which has 1 bytes"), std::string::npos);
  EXPECT_EQ(parse_error("text,u8"),
            "text: takes all bytes up to the end, so it must be the last field");
  EXPECT_EQ(parse_error("char(2048)"), "no error");
  EXPECT_EQ(parse_error("char(2049)"), "\"char(2049)\": N is a number from 1 to 2048");
  EXPECT_EQ(parse_error("bytes(0)"), "\"bytes(0)\": N is a number from 1 to 2048");
  EXPECT_EQ(parse_error("varchar").find("\"varchar\": is no format: expected text"), 0u);
  EXPECT_EQ(parse_error("").find("\"\": is no format"), 0u);
  std::string most = "u8";
  for (size_t i = 1; i < kMaxFormatFields; ++i) most += ",u8";
  EXPECT_EQ(parse_error(most), "no error");
  EXPECT_EQ(parse_error(most + ",u8"), "a format has at most 32 fields");
}

TEST(ValueFormat, JsonIsCheckedAndStoredWithoutBlanks) {
  const auto bytes = format("json").encode("{\"b\": [1, 2.5, null],\n \"a\": \"x\"}");
  ASSERT_TRUE(bytes) << bytes.error();
  EXPECT_EQ(*format("text").decode(*bytes), "{\"b\":[1,2.5,null],\"a\":\"x\"}");
  // A parser would round the number, and remove the second member.
  const std::string odd = R"({"n":12345678901234567890123,"a b\\\" c":1.50,"n":0})";
  const auto kept = format("json").encode(" " + odd + "\r\n\t");
  ASSERT_TRUE(kept) << kept.error();
  EXPECT_EQ(*format("json").decode(*kept), odd);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(kept->data()), kept->size()), odd);
  EXPECT_EQ(format("json").to_json(*bytes)->at("b").at(1), 2.5);
  EXPECT_EQ(encoded("json", "{"), "error: \"{\": is not a JSON document");
  EXPECT_EQ(decoded("json", "7b"),
            "error: \"{\": is not a JSON document: choose the format text or hex");
  const std::string deep(kMaxJsonText / 2, '[');
  const std::string whole = deep + std::string(kMaxJsonText / 2, ']');
  EXPECT_TRUE(format("json").encode(whole)) << "at the limit";
  EXPECT_FALSE(format("json").encode(" " + whole)) << "past the limit";
}

TEST(ValueFormat, ResultsForProgramsAreNumbersStringsAndLists) {
  const auto json = [](const std::string& type, const std::string& text) {
    const ValueFormat parsed = format(type);
    return parsed.to_json(*parsed.encode(text))->dump();
  };
  EXPECT_EQ(json("u64", "18446744073709551615"), "18446744073709551615");
  EXPECT_EQ(json("text", "1"), "\"1\"");
  EXPECT_EQ(json("u8,text", "1,a"), "[1,\"a\"]");
  EXPECT_EQ(json("f64", "inf"), "\"inf\"") << "JSON has no infinity";
  EXPECT_EQ(json("hex", "00ff"), "\"00ff\"");
}

TEST(ValueFormat, APrefixMayLackItsLastFields) {
  const ValueFormat parsed = format("u8,u16,text", Part::key);
  const auto prefix = [&](const std::string& text) {
    const auto bytes = parsed.encode_prefix(text);
    return bytes ? *format("hex").decode(*bytes) : "error: " + bytes.error();
  };
  EXPECT_EQ(prefix(""), "");
  EXPECT_EQ(prefix("7"), "07");
  EXPECT_EQ(prefix("7,1"), "070001");
  EXPECT_EQ(prefix("7,1,ab"), "0700016162");
  EXPECT_EQ(prefix("x"), "error: \"x\": is not a number of type u8");
  const ValueFormat names = format("char(4),char(3)", Part::key);
  EXPECT_EQ(*format("text").decode(*names.encode_prefix("al")), "al");
  EXPECT_EQ(names.encode_prefix("al,b")->size(), 5u) << "only the last given field is not padded";
}

TEST(ValueFormat, TheOrderOfKeysIsThatOfTheirNumbers) {
  std::mt19937_64 random(test::seed());
  const ValueFormat parsed = format("u16,u64", Part::key);
  std::vector<std::pair<uint16_t, uint64_t>> numbers;
  for (int i = 0; i < 500; ++i) {
    numbers.emplace_back(static_cast<uint16_t>(random() % 3), random() >> (random() % 64));
  }
  const auto key = [&](const auto& pair) {
    return *parsed.encode(std::to_string(pair.first) + "," + std::to_string(pair.second));
  };
  std::ranges::sort(numbers);
  for (size_t i = 1; i < numbers.size(); ++i) {
    EXPECT_LE(key(numbers[i - 1]), key(numbers[i]));
    EXPECT_EQ(numbers[i - 1] == numbers[i], key(numbers[i - 1]) == key(numbers[i]));
  }
}

TEST(ValueFormat, RandomBytesReturnFromTheirText) {
  std::mt19937_64 random(test::seed());
  const char* formats[] = {"text", "hex", "u8,text", "char(5),hex", "i32,f64,bytes(3),text"};
  for (uint64_t round = 0; round < test::rounds(5'000, 100'000); ++round) {
    const ValueFormat parsed = format(formats[random() % std::size(formats)]);
    Bytes bytes(15 + random() % 40);
    for (std::byte& byte : bytes) {
      byte = static_cast<std::byte>(random() % 4 == 0 ? "\\,\n\xc3\xa4\x00\x1b"[random() % 7]
                                                      : static_cast<char>(random()));
    }
    const auto text = parsed.decode(bytes);
    ASSERT_TRUE(text) << text.error();
    if (text->contains("nan")) continue;  // of a NaN only the sign is kept
    const auto again = parsed.encode(*text);
    ASSERT_TRUE(again) << *text << ": " << again.error();
    EXPECT_EQ(*again, bytes) << parsed.name() << ": " << *text;
    EXPECT_TRUE(std::ranges::none_of(*text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }));
  }
}

}  // namespace
}  // namespace atolldb::shell
