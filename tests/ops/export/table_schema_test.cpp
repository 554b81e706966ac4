// Schema files: what they mean, and the error of each mistake.
#include <gtest/gtest.h>

#include "ops/export/table_schema.h"

namespace atolldb {
namespace {

/// Returns the text of a table with these keys and columns.
std::string table_text(const std::string& type, const std::string& key, const std::string& columns,
                       const std::string& payload_bytes = "16") {
  return "[[table]]\nname = \"t\"\ntype = \"" + type + "\"\npayload_bytes = " + payload_bytes +
         "\n" + (key.empty() ? "" : "key = [" + key + "]\n") +
         (columns.empty() ? "" : "column = [" + columns + "]\n");
}

const std::string kKey = R"t({ name = "k", type = "u64", offset = 0 })t";
const std::string kIndex = R"t({ name = "i", type = "u32" })t";

TEST(TableSchema, HasKeysAndColumnsOfAllTypes) {
  const std::string text = "encoding = \"latin1\"\n" + table_text("mastertree", R"t(
    { name = "w", type = "u16", offset = 0, size = 8, shift = 48, bits = 16 },
    { name = "o", type = "u32", offset = 0, size = 8, bits = 32 },
    { name = "tail", type = "varchar(20)", offset = 8 })t",
                                                                  R"t(
    { name = "a", type = "i16", offset = 0, null = -1 },
    { name = "b", type = "decimal(9,2)", offset = 4, stored = "i32" },
    { name = "c", type = "timestamp", offset = 8 },
    { name = "d", type = "char(3)", offset = 16 },
    { name = "e", type = "varchar(10)", offset = 20, length_offset = 19, length_bytes = 1 },
    { name = "f", type = "bytes(2)", offset = 30 },
    { name = "g", type = "f64", offset = 32 },
    { name = "rest", type = "varchar(100)", offset = 40 })t",
                                                                  "40");
  const auto schema = parse_export_schema(text, "s.toml");
  ASSERT_TRUE(schema) << schema.error().message;
  const TableSchema* table = schema->find("t");
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(schema->find("u"), nullptr);
  EXPECT_EQ(table->storage, "t");
  EXPECT_EQ(table->type, StorageType::mastertree);
  EXPECT_EQ(table->key_bytes, 8u);
  EXPECT_EQ(table->payload_bytes, 40u);
  EXPECT_TRUE(table->has_rest(true));
  EXPECT_TRUE(table->has_rest(false));
  ASSERT_EQ(table->columns.size(), 11u);
  EXPECT_EQ(table->columns[0].shift, 48u);
  EXPECT_EQ(table->columns[0].bits, 16u);
  EXPECT_EQ(table->columns[1].bits, 32u);
  EXPECT_EQ(table->columns[2].length, TextLength::rest);
  EXPECT_EQ(table->columns[3].null, UINT64_MAX);
  EXPECT_EQ(table->columns[4].size, 4u);
  EXPECT_EQ(table->columns[4].scale, 2u);
  EXPECT_EQ(table->columns[6].length, TextLength::padded);
  EXPECT_TRUE(table->columns[6].is_latin1);
  EXPECT_EQ(table->columns[7].length, TextLength::member);
  EXPECT_EQ(table->columns[7].length_offset, 19u);
  EXPECT_EQ(table->columns[8].type, ColumnType::bytes);
}

struct Mistake {
  std::string text;
  std::string error;  // a part of the expected error text
};

TEST(TableSchema, NamesTheLineOfEachMistake) {
  const auto column = [](const std::string& text) {
    return table_text("mastertree", kKey, "{ name = \"c\", " + text + " }");
  };
  const Mistake mistakes[] = {
      {"", "s.toml:1:"},
      {"a = [", "s.toml:1:"},
      {"tables = 1\n", "s.toml:1:1: tables: there is no such key here: choose one of encoding"},
      {"encoding = \"ebcdic\"\n", "encoding: expected \"utf-8\" or \"latin1\""},
      {"table = 3\n", "table: expected a list of tables"},
      {"[[table]]\ntype = \"array\"\n", "name: is missing"},
      {"[[table]]\nname = \"a/b\"\n", "s.toml:2:8: name: expected 1 to 63 letters"},
      {"[[table]]\nname = 3\n", "s.toml:2:8: name: expected a text"},
      {"[[table]]\nname = \"t\"\ntype = \"heap\"\n", "s.toml:3:8: type: expected array"},
      {"[[table]]\nname = \"t\"\ntype = \"array\"\n", "payload_bytes: is missing"},
      {"[[table]]\nname = \"t\"\nstorage = \"\"\ntype = \"array\"\n", "s.toml:3:11: storage"},
      {table_text("mastertree", "", R"t({ name = "c", type = "i8", offset = 0 })t"),
       "key: is missing"},
      {table_text("sequential", kKey, R"t({ name = "c", type = "i8", offset = 0 })t"),
       "key: a sequential storage has no keys"},
      {table_text("sequential", "", ""), "column: is missing"},
      {table_text("mastertree", kKey, "", "2049"),
       "payload_bytes: expected an integer from 0 to 2048, got 2049"},
      {table_text("mastertree", kKey, kKey), "two columns of table \"t\" have the name \"k\""},
      {table_text("mastertree", kKey, "") + table_text("mastertree", kKey, ""),
       "two tables have the name \"t\""},
      {table_text("mastertree", R"t({ name = "k", type = "i64", offset = 0 })t", ""),
       "type: expected u8 to u64, char, varchar or bytes in the key of a mastertree"},
      {table_text("mastertree", R"t({ name = "k", type = "char(8)", offset = 0, bits = 3 })t", ""),
       "size, shift and bits belong to numbers"},
      {table_text("mastertree", R"t({ name = "k", type = "u8", offset = 0, bits = 9 })t", ""),
       "bits: expected an integer from 1 to 8, got 9"},
      {table_text("mastertree", R"t({ name = "k", type = "u8", offset = 0, shift = 8 })t", ""),
       "shift: expected an integer from 0 to 7, got 8"},
      {table_text("mastertree", R"t({ name = "k", type = "char(8)", offset = 1017 })t", ""),
       "a key has at most 1024 bytes"},
      {table_text("mastertree", kKey + R"t(, { name = "l", type = "u8", offset = 7 })t", ""),
       "column \"l\" overlaps"},
      {table_text("array", R"t({ name = "i", type = "i32" })t", ""), "expected u8 to u64"},
      {table_text("array", R"t({ name = "i", type = "u32", stride = 0 })t", ""),
       "stride: expected an integer from 1"},
      {table_text("array", kIndex + R"t(, { name = "j", type = "u32" })t", ""),
       "stride: expected less than the 1 of the column before, got 1"},
      {table_text("array", kIndex, R"t({ name = "v", type = "varchar(9)", offset = 16 })t"),
       "column \"v\" overlaps"},
      {column("offset = 0"), "type: is missing"},
      {column("type = \"i8\""), "offset: is missing"},
      {column("type = \"i9\", offset = 0"), "got \"i9\""},
      {column("type = \"char\", offset = 0"), "got \"char\""},
      {column("type = \"char(0)\", offset = 0"), "expected 1 to 2048 bytes, got 0"},
      {column("type = \"char(2049)\", offset = 0"), "expected 1 to 2048 bytes, got 2049"},
      {column("type = \"char(x)\", offset = 0"), "got \"char(x)\""},
      {column("type = \"char(3\", offset = 0"), "got \"char(3\""},
      {column("type = \"decimal(9)\", offset = 0"), "got \"decimal(9)\""},
      {column("type = \"decimal(19,2)\", offset = 0"), "expected 1 to 18 digits in an i64"},
      {column("type = \"decimal(10,2)\", offset = 0, stored = \"i32\""),
       "expected 1 to 9 digits in an i32"},
      {column("type = \"decimal(2,3)\", offset = 0"), "at most as many decimals"},
      {column("type = \"decimal(2,2)\", offset = 0, stored = \"f64\""), "stored: expected"},
      {column("type = \"i64\", offset = 0, stored = \"i64\""), "stored: only decimals have it"},
      {column("type = \"i64\", offset = 9"), "goes beyond the 16 bytes of the payload"},
      {column("type = \"i64\", offset = -1"), "offset: expected an integer from 0"},
      {column("type = \"i8\", offset = 0, null = 128"),
       "null: expected an integer from -128 to 127, got 128"},
      {column("type = \"u8\", offset = 0, null = -1"),
       "null: expected an integer from 0 to 255, got -1"},
      {column("type = \"char(3)\", offset = 0, null = 0"), "only stored integers"},
      {column("type = \"f32\", offset = 0, null = 0"), "only stored integers"},
      {column("type = \"char(3)\", offset = 0, length_offset = 4"), "only a varchar has a length"},
      {column("type = \"varchar(3)\", offset = 0"), "a varchar without a length that does not end"},
      {column("type = \"varchar(3)\", offset = 0, length_bytes = 1"), "length_offset: is missing"},
      {column("type = \"varchar(3)\", offset = 0, length_offset = 2"), "overlaps another one"},
      {column("type = \"varchar(9)\", offset = 0, length_offset = 9, length_bytes = 3"),
       "length_bytes: expected 1, 2 or 4"},
      {column("type = \"i8\", offset = 0, size = 8"), "size: there is no such key here"},
      {table_text("mastertree", kKey, "3"), "column: expected a table"},
  };
  for (const Mistake& mistake : mistakes) {
    const auto schema = parse_export_schema(mistake.text, "s.toml");
    ASSERT_FALSE(schema) << mistake.text;
    EXPECT_EQ(schema.error().code, ExitCode::config);
    EXPECT_TRUE(schema.error().message.starts_with("s.toml:")) << schema.error().message;
    EXPECT_NE(schema.error().message.find(mistake.error), std::string::npos)
        << mistake.text << "\n"
        << schema.error().message;
  }
}

std::string many_columns(size_t count) {
  std::string columns;
  for (size_t i = 0; i < count; ++i) {
    columns += "{ name = \"c" + std::to_string(i) +
               "\", type = \"u8\", offset = " + std::to_string(i) + " },";
  }
  return columns;
}

std::string many_tables(size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += "[[table]]\nname = \"t" + std::to_string(i) +
            "\"\ntype = \"array\"\npayload_bytes = 0\nkey = [" + kIndex + "]\n";
  }
  return text;
}

TEST(TableSchema, KeepsItsLimits) {
  const auto of_columns = [](size_t count) {
    return parse_export_schema(
        table_text("mastertree", kKey, many_columns(count - 1), std::to_string(kMaxColumnBytes)),
        "s.toml");
  };
  EXPECT_TRUE(of_columns(kMaxTableColumns));
  const auto columns = of_columns(kMaxTableColumns + 1);
  ASSERT_FALSE(columns);
  EXPECT_NE(columns.error().message.find("at most 1024"), std::string::npos)
      << columns.error().message;
  EXPECT_TRUE(parse_export_schema(many_tables(kMaxSchemaTables), "s.toml"));
  const auto tables = parse_export_schema(many_tables(kMaxSchemaTables + 1), "s.toml");
  ASSERT_FALSE(tables);
  EXPECT_NE(tables.error().message.find("at most 1024 entries, got 1025"), std::string::npos)
      << tables.error().message;
  const auto named = [](size_t length) {
    std::string text = many_tables(1);
    text.replace(text.find("t0"), 2, std::string(length, 'n'));
    return parse_export_schema(text, "s.toml");
  };
  EXPECT_TRUE(named(kMaxSchemaNameBytes));
  EXPECT_FALSE(named(kMaxSchemaNameBytes + 1));
}

}  // namespace
}  // namespace atolldb
