// Statements as bytes: ranges of scans, arrays, numbers, and wrong arguments.
#include "ops/shell/statement.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "ops/shell/line_editor.h"
#include "tests/support/seed.h"

namespace atolldb::shell {
namespace {

const StorageEntry kTree{"tree", StorageType::mastertree, 0, 0};
const StorageEntry kArray{"array", StorageType::array, 8, 100};

Formats formats(const std::string& key, const std::string& value = "text") {
  return {*ValueFormat::parse(key, ValueFormat::Part::key),
          *ValueFormat::parse(value, ValueFormat::Part::value)};
}

std::string hex(KvBytes bytes) {
  return *ValueFormat::parse("hex", ValueFormat::Part::value)->decode(bytes);
}

Statement scan() {
  Statement statement;
  statement.code = KvCode::scan;
  return statement;
}

/// Returns "[low, high)" in hexadecimal digits, or the error.
std::string range_of(const Statement& statement, const std::string& key_format = "text",
                     const StorageEntry& storage = kTree) {
  const auto bound = bind(statement, storage, formats(key_format));
  if (!bound) return "error: " + bound.error();
  return (bound->has_low ? "[" + hex(bound->low) : "(") + ", " +
         (bound->has_high ? hex(bound->high) : "") + ")";
}

TEST(Statement, APrefixIsARangeOfKeys) {
  Statement statement = scan();
  statement.prefix = "ab";
  EXPECT_EQ(range_of(statement), "[6162, 6163)");
  statement.prefix = "a\\xff\\xff";
  EXPECT_EQ(range_of(statement), "[61ffff, 62)");
  statement.prefix = "\\xff";
  EXPECT_EQ(range_of(statement), "[ff, )") << "no key follows";
  statement.prefix = "";
  EXPECT_EQ(range_of(statement), "[, )");
  statement.prefix = "7";
  EXPECT_EQ(range_of(statement, "u8,u16"), "[07, 08)");
  EXPECT_EQ(range_of(statement, "text", kArray),
            "error: --prefix: storage \"array\" is an array: use --low and --high");
}

TEST(Statement, AScanContinuesAfterAKeyInItsDirection) {
  Statement statement = scan();
  statement.low = "b";
  statement.high = "y";
  EXPECT_EQ(range_of(statement), "[62, 79)");
  statement.after = "m";
  EXPECT_EQ(range_of(statement), "[6d00, 79)");
  statement.after = "a";
  EXPECT_EQ(range_of(statement), "[62, 79)") << "the bound is closer";
  statement.reverse = true;
  statement.after = "m";
  EXPECT_EQ(range_of(statement), "[62, 6d)");
  statement.after = "z";
  EXPECT_EQ(range_of(statement), "[62, 79)") << "the bound is closer";
  statement.low.reset();
  statement.high.reset();
  EXPECT_EQ(range_of(statement), "(, 7a)");
}

TEST(Statement, AKeyOfAnArrayIsItsIndex) {
  Statement statement;
  statement.code = KvCode::get;
  statement.key = "258";
  const auto bound = bind(statement, kArray, formats("hex"));
  ASSERT_TRUE(bound) << bound.error();
  EXPECT_EQ(hex(bound->key), "0000000000000102");
  EXPECT_EQ(*RecordText(formats("hex"), kArray).key(bound->key), "258");
  for (const char* wrong : {"", "-1", "1x", "18446744073709551616"}) {
    statement.key = wrong;
    const auto refused = bind(statement, kArray, formats("hex"));
    ASSERT_FALSE(refused) << wrong;
    EXPECT_NE(refused.error().find("the key of an array is an index"), std::string::npos);
  }
}

TEST(Statement, WrongArgumentsAreNamed) {
  Statement statement;
  statement.code = KvCode::put;
  statement.key = "x";
  statement.value = "y";
  EXPECT_EQ(bind(statement, kTree, formats("u8")).error(),
            "KEY: \"x\": is not a number of type u8");
  EXPECT_EQ(bind(statement, kTree, formats("text", "u8")).error(),
            "VALUE: \"y\": is not a number of type u8");
  statement.code = KvCode::add;
  statement.value = "1.5";
  EXPECT_EQ(bind(statement, kTree, formats("text")).error(),
            "VALUE: \"1.5\": is not a number of type i64");
  statement.number = "f64";
  EXPECT_TRUE(bind(statement, kTree, formats("text")));
  EXPECT_FALSE(bind(statement, kTree, formats("text"))->is_blind);
  statement.is_blind = true;
  EXPECT_TRUE(bind(statement, kTree, formats("text"))->is_blind);
  statement.number = "i8";
  EXPECT_EQ(bind(statement, kTree, formats("text")).error(),
            "--type: \"i8\": use i32, i64, u32, u64 or f64");
  Statement low = scan();
  low.low = "x";
  EXPECT_EQ(range_of(low, "u8"), "error: --low: \"x\": is not a number of type u8");
}

/// Compares the range of a prefix with the definition, on random keys.
TEST(Statement, AKeyIsInTheRangeOfAPrefixIfItBeginsWithIt) {
  std::mt19937_64 random(test::seed());
  const auto bytes = [&] {
    std::string text;
    for (uint64_t i = random() % 4; i > 0; --i) text += "\xff\xfe\x01"[random() % 3];
    return text;
  };
  for (int round = 0; round < 20'000; ++round) {
    const std::string prefix = bytes();
    const std::string key = bytes();
    Statement statement = scan();
    statement.prefix = hex(kv_bytes(prefix));
    const auto bound = bind(statement, kTree, formats("hex"));
    ASSERT_TRUE(bound) << bound.error();
    const std::vector<std::byte> at(kv_bytes(key).begin(), kv_bytes(key).end());
    const bool is_in = at >= bound->low && (!bound->has_high || at < bound->high);
    EXPECT_EQ(is_in, key.starts_with(prefix)) << hex(kv_bytes(key)) << " " << *statement.prefix;
  }
}

TEST(Completion, ThePrefixOfAllWordsIsInserted) {
  EXPECT_EQ(common_prefix({}), "");
  EXPECT_EQ(common_prefix({"accounts"}), "accounts");
  EXPECT_EQ(common_prefix({"accounts", "account"}), "account");
  EXPECT_EQ(common_prefix({"a", "b"}), "");
}

}  // namespace
}  // namespace atolldb::shell
