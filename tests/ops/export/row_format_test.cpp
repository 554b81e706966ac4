// Rows of CSV from records and back: values of all types, their limits, random records.
#include "ops/export/row_format.h"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <random>
#include <sstream>

#include "tests/support/seed.h"

namespace atolldb {
namespace {

/// Parses a schema with one table, and returns that.
TableSchema table_of(const std::string& type, const std::string& key, const std::string& columns,
                     uint32_t payload_bytes, const std::string& head = "") {
  const auto schema =
      parse_export_schema(head + "[[table]]\nname = \"t\"\ntype = \"" + type +
                              "\"\npayload_bytes = " + std::to_string(payload_bytes) + "\n" +
                              (key.empty() ? "" : "key = [" + key + "]\n") +
                              (columns.empty() ? "" : "column = [" + columns + "]\n"),
                          "s.toml");
  EXPECT_TRUE(schema) << schema.error().message;
  return schema ? schema->tables.front() : TableSchema();
}

TableSchema one_column(const std::string& column, uint32_t payload_bytes,
                       const std::string& head = "") {
  return table_of("sequential", "", "{ name = \"c\", " + column + " }", payload_bytes, head);
}

std::string row_of(const TableSchema& table, std::string_view key, std::string_view payload) {
  std::string row;
  const auto done =
      append_row(table, key, std::as_bytes(std::span(payload.data(), payload.size())), row);
  return done ? row : "error: " + done.error();
}

std::vector<CsvField> fields_of(const std::string& row) {
  std::istringstream stream(row);
  CsvReader reader(stream, "row");
  CsvRow read;
  const auto has_row = reader.next(read);
  EXPECT_TRUE(has_row && *has_row) << row;
  return read.fields;
}

FieldOrder order_of(const TableSchema& table) {
  const auto order = order_of_fields(table, fields_of(header_row(table)));
  EXPECT_TRUE(order) << order.error();
  return order ? *order : FieldOrder();
}

/// Returns the payload, or the error.
std::string payload_of(const TableSchema& table, const std::string& row) {
  const auto record = parse_row(table, order_of(table), fields_of(row));
  if (!record) return "error: " + record.error();
  return {reinterpret_cast<const char*>(record->payload.data()), record->payload.size()};
}

template <typename Number>
std::string stored(Number number) {
  return {reinterpret_cast<const char*>(&number), sizeof(number)};
}

/// Expects that the value is written as `text`, and that `text` is read as the value.
template <typename Number>
void expect_value(const std::string& column, Number number, const std::string& text) {
  const TableSchema table = one_column(column + ", offset = 0", sizeof(number));
  EXPECT_EQ(row_of(table, "", stored(number)), text + "\n") << column;
  EXPECT_EQ(payload_of(table, text), stored(number)) << column << ": " << text;
}

void expect_refused(const std::string& column, uint32_t bytes, const std::string& text,
                    const std::string& reason) {
  const std::string error = payload_of(one_column(column + ", offset = 0", bytes), text);
  EXPECT_TRUE(error.starts_with("error: c: ")) << column << ": " << text;
  EXPECT_NE(error.find(reason), std::string::npos) << column << ": " << text << ": " << error;
}

TEST(RowFormat, WritesAndReadsNumbersAtTheirLimits) {
  expect_value<int8_t>("type = \"i8\"", -128, "-128");
  expect_value<int64_t>("type = \"i64\"", INT64_MIN, "-9223372036854775808");
  expect_value<int64_t>("type = \"i64\"", INT64_MAX, "9223372036854775807");
  expect_value<uint8_t>("type = \"u8\"", 255, "255");
  expect_value<uint64_t>("type = \"u64\"", UINT64_MAX, "18446744073709551615");
  expect_value<float>("type = \"f32\"", 0.1f, "0.1");
  expect_value<double>("type = \"f64\"", -1e300, "-1e+300");
  expect_value<double>("type = \"f64\"", std::numeric_limits<double>::infinity(), "inf");
  expect_refused("type = \"i8\"", 1, "128", "expected -128 to 127");
  expect_refused("type = \"i8\"", 1, "-129", "expected -128 to 127");
  expect_refused("type = \"u16\"", 2, "65536", "expected at most 65535");
  expect_refused("type = \"u16\"", 2, "-1", "expected digits");
  expect_refused("type = \"u64\"", 8, "18446744073709551616", "does not fit into 64 bits");
  expect_refused("type = \"i32\"", 4, "1.0", "expected digits");
  expect_refused("type = \"i32\"", 4, " 1", "expected digits");
  expect_refused("type = \"i32\"", 4, "\"\"", "expected digits");
  expect_refused("type = \"i32\"", 4, "\n", "no value for null");
  expect_refused("type = \"f32\"", 4, "1e39", "does not fit");
  expect_refused("type = \"f64\"", 8, "one", "expected a number");
}

/// The text of a NaN has its sign and nothing else.
TEST(RowFormat, KeepsTheSignOfANotANumberAndNoOtherBits) {
  const TableSchema table = one_column("type = \"f64\", offset = 0", 8);
  constexpr uint64_t kQuiet = 0x7ff8'0000'0000'0000;
  constexpr uint64_t kSign = uint64_t{1} << 63;
  for (const uint64_t sign : {uint64_t{0}, kSign}) {
    const std::string text = sign == 0 ? "nan" : "-nan";
    for (const uint64_t bits : {kQuiet, kQuiet | 0x123, uint64_t{0x7ff0'0000'0000'0001}}) {
      EXPECT_EQ(row_of(table, "", stored(sign | bits)), text + "\n") << bits;
    }
    EXPECT_EQ(payload_of(table, text), stored(sign | kQuiet));
  }
}

TEST(RowFormat, WritesAndReadsDecimals) {
  const std::string money = "type = \"decimal(4,2)\", stored = \"i32\"";
  expect_value<int32_t>(money, 9'999, "99.99");
  expect_value<int32_t>(money, -9'999, "-99.99");
  expect_value<int32_t>(money, -5, "-0.05");
  expect_value<int64_t>("type = \"decimal(18,0)\"", 999'999'999'999'999'999, "999999999999999999");
  expect_value<int64_t>("type = \"decimal(4,4)\"", 1'234, "0.1234");
  const TableSchema table = one_column(money + ", offset = 0", 4);
  EXPECT_EQ(payload_of(table, "7"), stored<int32_t>(700));
  EXPECT_EQ(payload_of(table, "007.5"), stored<int32_t>(750));
  expect_refused(money, 4, "100.00", "expected at most 4 digits");
  expect_refused(money, 4, "1.234", "expected at most 2 decimals");
  for (const char* text : {"1.", ".5", "-", "+1", "1e2", "1.-2"}) {
    expect_refused(money, 4, text, "expected a decimal number");
  }
  EXPECT_NE(row_of(table, "", stored<int32_t>(10'000)).find("has more than the 4 digits"),
            std::string::npos);
}

TEST(RowFormat, WritesAndReadsTimestamps) {
  const std::string time = "type = \"timestamp\"";
  expect_value<int64_t>(time, 0, "1970-01-01T00:00:00.000000Z");
  expect_value<int64_t>(time, 1'795'406'706'000'001, "2026-11-23T04:05:06.000001Z");
  expect_value<int64_t>(time, -1, "1969-12-31T23:59:59.999999Z");
  expect_value<int64_t>(time, -62'135'596'800'000'000, "0001-01-01T00:00:00.000000Z");
  expect_value<int64_t>(time, 253'402'300'799'999'999, "9999-12-31T23:59:59.999999Z");
  const TableSchema table = one_column(time + ", offset = 0", 8);
  EXPECT_EQ(payload_of(table, "2026-11-23 04:05:06"), stored<int64_t>(1'795'406'706'000'000));
  EXPECT_EQ(payload_of(table, "2026-11-23T04:05:06.5"), stored<int64_t>(1'795'406'706'500'000));
  for (const char* text :
       {"2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-11-23", "2026-11-23T24:00:00Z",
        "2026-11-23T04:60:00Z", "2026-11-23T04:05:60Z", "2026-11-23T04:05:06.Z",
        "2026-11-23T04:05:06.0000001Z", "2026-11-23T04:05:06+01:00", "0000-01-01T00:00:00Z"}) {
    expect_refused(time, 8, text, "expected a time like");
  }
  for (const int64_t beyond : {-62'135'596'800'000'001, 253'402'300'800'000'000, INT64_MAX}) {
    EXPECT_NE(row_of(table, "", stored(beyond)).find("are not in the years"), std::string::npos);
  }
}

TEST(RowFormat, KeepsNullAndEmptyTextApart) {
  const TableSchema numbers = one_column("type = \"u8\", offset = 0, null = 0", 1);
  EXPECT_EQ(row_of(numbers, "", stored<uint8_t>(0)), "\n");
  EXPECT_EQ(payload_of(numbers, "\n"), stored<uint8_t>(0));
  EXPECT_NE(payload_of(numbers, "0").find("this value stands for null"), std::string::npos);
  const TableSchema texts = one_column("type = \"char(3)\", offset = 0", 3);
  EXPECT_EQ(row_of(texts, "", std::string(3, '\0')), "\"\"\n");
  EXPECT_EQ(payload_of(texts, "\"\""), std::string(3, '\0'));
}

TEST(RowFormat, WritesAndReadsTexts) {
  const TableSchema fixed = one_column("type = \"char(4)\", offset = 0", 4);
  EXPECT_EQ(row_of(fixed, "", std::string("a,\0\0", 4)), "\"a,\"\n");
  EXPECT_EQ(payload_of(fixed, "\"a,\""), std::string("a,\0\0", 4));
  EXPECT_EQ(payload_of(fixed, "abcd"), "abcd");
  expect_refused("type = \"char(4)\"", 4, "abcde", "has 5 bytes, the limit of char(4) is 4");
  expect_refused("type = \"char(4)\"", 4, "\xff", "not UTF-8");
  EXPECT_NE(row_of(fixed, "", std::string("a\0b\0", 4)).find("zero byte"), std::string::npos);
  EXPECT_NE(row_of(fixed, "", "\xff\xff\xff\xff").find("not UTF-8"), std::string::npos);

  const TableSchema latin =
      one_column("type = \"char(2)\", offset = 0", 2, "encoding = \"latin1\"\n");
  EXPECT_EQ(row_of(latin, "", "\xe9\xff"), "\xc3\xa9\xc3\xbf\n");
  EXPECT_EQ(payload_of(latin, "\xc3\xa9\xc3\xbf"), "\xe9\xff");
  EXPECT_NE(payload_of(latin, "\xe2\x82\xac").find("ISO 8859-1"), std::string::npos);

  const TableSchema counted =
      one_column("type = \"varchar(5)\", offset = 2, length_offset = 0, length_bytes = 2", 7);
  EXPECT_EQ(row_of(counted, "", std::string("\2\0abxxx", 7)), "ab\n");
  EXPECT_EQ(payload_of(counted, "ab"), std::string("\2\0ab\0\0\0", 7));
  EXPECT_NE(row_of(counted, "", std::string("\6\0abxxx", 7)).find("its length is 6, the limit 5"),
            std::string::npos);

  const TableSchema rest = one_column("type = \"varchar(5)\", offset = 0", 0);
  EXPECT_EQ(row_of(rest, "", "abc"), "abc\n");
  EXPECT_EQ(row_of(rest, "", ""), "\"\"\n");
  EXPECT_EQ(payload_of(rest, "abc"), "abc");
  EXPECT_EQ(row_of(rest, "", "abcde"), "abcde\n");
  EXPECT_NE(row_of(rest, "", "abcdef").find("has 6 bytes, the limit of varchar(5) is 5"),
            std::string::npos);
  EXPECT_NE(payload_of(rest, "abcdef").find("has 6 bytes, the limit of varchar(5) is 5"),
            std::string::npos);

  const TableSchema bytes = one_column("type = \"bytes(2)\", offset = 0", 2);
  EXPECT_EQ(row_of(bytes, "", std::string("\0\xff", 2)), "00ff\n");
  EXPECT_EQ(payload_of(bytes, "00FF"), std::string("\0\xff", 2));
  expect_refused("type = \"bytes(2)\"", 2, "00f", "expected 4 hexadecimal digits");
  expect_refused("type = \"bytes(2)\"", 2, "00fg", "expected hexadecimal digits");
}

TEST(RowFormat, WritesAndReadsIndexesOfArrays) {
  const TableSchema table = table_of("array", R"t(
      { name = "w", type = "u16", stride = 30, first = 1 },
      { name = "d", type = "u8", stride = 3, first = 1 },
      { name = "c", type = "u8", first = 5 })t",
                                     R"t({ name = "v", type = "u8", offset = 0 })t", 1);
  const std::string key("\0\0\0\0\0\0\0\x2a", 8);  // 42 = 1 * 30 + 4 * 3
  EXPECT_EQ(row_of(table, key, "\x07"), "2,5,5,7\n");
  const auto record = parse_row(table, order_of(table), fields_of("2,5,5,7"));
  ASSERT_TRUE(record) << record.error();
  EXPECT_EQ(record->key, key);
  EXPECT_NE(payload_of(table, "0,5,5,7").find("w: \"0\": expected at least 1"), std::string::npos);
  EXPECT_NE(payload_of(table, "2,11,5,7").find("d: \"11\": expected at most 10"),
            std::string::npos);
  EXPECT_NE(payload_of(table, "2,5,8,7").find("c: \"8\": expected at most 7"), std::string::npos);
  const TableSchema gaps =
      table_of("array", R"t({ name = "w", type = "u8", stride = 38 })t", "", 0);
  EXPECT_EQ(row_of(gaps, std::string("\0\0\0\0\0\0\0\x26", 8), ""), "1\n");
  EXPECT_NE(row_of(gaps, std::string("\0\0\0\0\0\0\0\x27", 8), "").find("lies between two keys"),
            std::string::npos);
  EXPECT_NE(row_of(gaps, std::string("\0\0\0\0\0\1\0\0", 8), "").find("more than u8 can hold"),
            std::string::npos);
}

TEST(RowFormat, WritesAndReadsBitsOfKeys) {
  const TableSchema table = table_of("mastertree", R"t(
      { name = "w", type = "u16", offset = 0, size = 8, shift = 48, bits = 16 },
      { name = "d", type = "u8", offset = 0, size = 8, shift = 44, bits = 4 },
      { name = "o", type = "u32", offset = 0, size = 8, bits = 32 },
      { name = "n", type = "varchar(9)", offset = 8 })t",
                                     "", 0);
  const std::string key("\x01\x02\x50\x00\x00\x00\x00\x09zz", 10);
  EXPECT_EQ(row_of(table, key, ""), "258,5,9,zz\n");
  const auto record = parse_row(table, order_of(table), fields_of("258,5,9,zz"));
  ASSERT_TRUE(record) << record.error();
  EXPECT_EQ(record->key, key);
  EXPECT_NE(payload_of(table, "1,16,9,zz").find("expected at most 15"), std::string::npos);
  EXPECT_NE(row_of(table, "short", "").find("the key has 5 bytes, the schema says 8 or more"),
            std::string::npos);
  EXPECT_NE(row_of(table, key, "x").find("the payload has 1 bytes, the schema says 0"),
            std::string::npos);
}

TEST(RowFormat, TakesColumnsInAnyOrder) {
  const TableSchema table = table_of("sequential", "", R"t(
      { name = "a", type = "u8", offset = 0 }, { name = "b", type = "u8", offset = 1 })t",
                                     2);
  const auto order = order_of_fields(table, fields_of("b,a"));
  ASSERT_TRUE(order);
  const auto record = parse_row(table, *order, fields_of("2,1"));
  ASSERT_TRUE(record);
  EXPECT_EQ(record->payload, (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
  EXPECT_FALSE(parse_row(table, *order, fields_of("2")));
  EXPECT_FALSE(parse_row(table, *order, fields_of("2,1,0")));
  EXPECT_FALSE(order_of_fields(table, fields_of("a")));
  EXPECT_FALSE(order_of_fields(table, fields_of("a,b,c")));
  EXPECT_FALSE(order_of_fields(table, fields_of("a,a")));
}

TEST(RowFormat, RandomRecordsComeBack) {
  const TableSchema table = table_of("mastertree", R"t(
      { name = "k", type = "u64", offset = 0 },
      { name = "s", type = "varchar(60)", offset = 8 })t",
                                     R"t(
      { name = "a", type = "i8", offset = 0 }, { name = "b", type = "i32", offset = 4 },
      { name = "c", type = "u64", offset = 8, null = 7 }, { name = "d", type = "f32", offset = 16 },
      { name = "e", type = "f64", offset = 24 }, { name = "f", type = "char(9)", offset = 32 },
      { name = "g", type = "varchar(20)", offset = 44, length_offset = 42 },
      { name = "h", type = "bytes(4)", offset = 64 },
      { name = "i", type = "decimal(9,3)", offset = 68, stored = "i32" },
      { name = "j", type = "timestamp", offset = 72 })t",
                                     80, "encoding = \"latin1\"\n");
  std::mt19937_64 random(test::seed());
  const auto text = [&](uint64_t most) {
    std::string letters(random() % (most + 1), '\0');
    for (char& letter : letters) letter = static_cast<char>(1 + random() % 255);
    return letters;
  };
  for (uint64_t round = 0; round < test::rounds(3'000, 300'000); ++round) {
    std::string payload(80, '\0');
    const auto put = [&](size_t at, const std::string& bytes) {
      payload.replace(at, bytes.size(), bytes);
    };
    put(0, stored(static_cast<int8_t>(random())));
    put(4, stored(static_cast<int32_t>(random())));
    put(8, stored(random() % 4 == 0 ? random() % 10 : random()));
    put(16, stored(static_cast<float>(random()) / static_cast<float>(1 + random() % 1'000)));
    put(24, stored(static_cast<double>(random()) / static_cast<double>(1 + random())));
    put(32, text(9));
    const std::string counted = text(20);
    put(42, stored(static_cast<uint16_t>(counted.size())));
    put(44, counted);
    put(64, stored(static_cast<uint32_t>(random())));
    put(68, stored(static_cast<int32_t>(random() % 1'999'999'999) - 999'999'999));
    put(72, stored(static_cast<int64_t>(random() % 253'402'300'800'000'000)));
    const std::string key = stored(random()) + text(60);
    const std::string row = row_of(table, key, payload);
    const auto record = parse_row(table, order_of(table), fields_of(row));
    ASSERT_TRUE(record) << record.error() << "\n" << row;
    ASSERT_EQ(record->key, key) << row;
    ASSERT_EQ(payload_of(table, row), payload) << row;
  }
}

}  // namespace
}  // namespace atolldb
