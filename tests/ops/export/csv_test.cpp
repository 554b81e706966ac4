// CSV: what is written is read again, and each mistake has its line.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "ops/export/csv.h"
#include "tests/support/seed.h"

namespace atolldb {
namespace {

struct Read {
  std::vector<CsvRow> rows;
  std::string error;
};

Read read_all(const std::string& text) {
  std::istringstream stream(text);
  CsvReader reader(stream, "f.csv");
  Read read;
  for (;;) {
    CsvRow row;
    const auto has_row = reader.next(row);
    if (!has_row) {
      read.error = has_row.error().message;
      return read;
    }
    if (!*has_row) return read;
    read.rows.push_back(std::move(row));
  }
}

TEST(Csv, ReadsRowsAsRfc4180SaysThem) {
  const Read read = read_all("a,\"b\"\"c\",\r\n\"x\ny\",\"\",z\n,,\nlast");
  ASSERT_EQ(read.error, "");
  ASSERT_EQ(read.rows.size(), 4u);
  EXPECT_EQ(read.rows[0].fields,
            (std::vector<CsvField>{{"a", false}, {"b\"c", true}, {"", false}}));
  EXPECT_TRUE(read.rows[0].fields[2].is_null());
  EXPECT_EQ(read.rows[1].fields, (std::vector<CsvField>{{"x\ny", true}, {"", true}, {"z", false}}));
  EXPECT_FALSE(read.rows[1].fields[1].is_null());
  EXPECT_EQ(read.rows[2].fields.size(), 3u);
  EXPECT_EQ(read.rows[3].fields, (std::vector<CsvField>{{"last", false}}));
  const uint64_t lines[] = {1, 2, 4, 5};
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(read.rows[i].line, lines[i]);
  for (size_t i = 1; i < 4; ++i) EXPECT_EQ(read.rows[i].offset, read.rows[i - 1].end);
  EXPECT_EQ(read.rows[0].offset, 0u);
  EXPECT_TRUE(read_all("").rows.empty());
}

TEST(Csv, NamesTheLineOfEachMistake) {
  const std::pair<std::string, std::string> mistakes[] = {
      {"a\nb\"c\n", "f.csv:2: a quote is within a field"},
      {"a\n\"b\"c\n", "f.csv:2: text follows closing quotes"},
      {"a\n\"b\nc", "f.csv:3: the quotes that open in line 2 are not closed"},
      {"a\rb\n", "f.csv:1: a carriage return without a line feed"},
  };
  for (const auto& [text, error] : mistakes) {
    EXPECT_TRUE(read_all(text).error.starts_with(error)) << read_all(text).error;
  }
}

TEST(Csv, KeepsItsLimits) {
  EXPECT_EQ(read_all(std::string(kMaxCsvFieldBytes, 'x') + "\n").error, "");
  EXPECT_NE(read_all(std::string(kMaxCsvFieldBytes + 1, 'x') + "\n").error, "");
  EXPECT_NE(read_all("\"" + std::string(kMaxCsvFieldBytes + 1, 'x') + "\"").error, "");
  EXPECT_EQ(read_all(std::string(kMaxCsvFields - 1, ',') + "\n").error, "");
  EXPECT_NE(read_all(std::string(kMaxCsvFields, ',') + "\n").error, "");
}

TEST(Csv, ReadsAgainWhatWasWritten) {
  std::mt19937_64 random(test::seed());
  constexpr std::string_view kLetters = "ab,\"\r\n \t0\xc3\xa9";
  for (uint64_t round = 0; round < test::rounds(300, 20'000); ++round) {
    std::vector<std::vector<CsvField>> written(1 + random() % 20);
    const size_t fields = 1 + random() % 8;
    std::string text;
    for (auto& row : written) {
      for (size_t i = 0; i < fields; ++i) {
        CsvField field;
        const bool is_null = random() % 5 == 0;
        const uint64_t length = is_null ? 0 : random() % (random() % 20 == 0 ? 4'000 : 8);
        for (uint64_t n = 0; n < length; ++n) field.text += kLetters[random() % kLetters.size()];
        if (i != 0) text += ',';
        if (!is_null) append_csv_text(text, field.text);
        field.is_quoted = !is_null && (field.text.empty() ||
                                       field.text.find_first_of("\",\r\n") != std::string::npos);
        row.push_back(std::move(field));
      }
      text += '\n';
    }
    const Read read = read_all(text);
    ASSERT_EQ(read.error, "") << text;
    ASSERT_EQ(read.rows.size(), written.size());
    for (size_t i = 0; i < written.size(); ++i) ASSERT_EQ(read.rows[i].fields, written[i]);
  }
}

TEST(Csv, NoiseIsReadOrRefusedAndNeverHangs) {
  std::mt19937_64 random(test::seed());
  constexpr std::string_view kNoise = "a\",\r\n";
  for (uint64_t round = 0; round < test::rounds(20'000, 2'000'000); ++round) {
    std::string text;
    for (uint64_t n = random() % 12; n > 0; --n) text += kNoise[random() % kNoise.size()];
    const Read read = read_all(text);
    uint64_t end = 0;
    for (const CsvRow& row : read.rows) {
      ASSERT_EQ(row.offset, end) << text;
      ASSERT_FALSE(row.fields.empty());
      end = row.end;
    }
    if (read.error.empty()) {
      ASSERT_EQ(end, text.size()) << text;
    } else {
      ASSERT_TRUE(read.error.starts_with("f.csv:")) << read.error;
    }
  }
}

}  // namespace
}  // namespace atolldb
