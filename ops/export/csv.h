// CSV as in RFC 4180: fields in quotes may hold commas, quotes and line ends. Source: RFC 4180
// section 2. Rows end with a line feed; a carriage return before it is accepted.
//
// An empty field without quotes is null, an empty field in quotes is an empty text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "shared/base/error.h"

namespace atolldb {

/// Maximum size of a field. The largest column has half as many bytes, and each becomes at most two
/// bytes of text.
inline constexpr size_t kMaxCsvFieldBytes = 4'096;
/// Maximum number of fields in a row. It is the number of columns of the largest table.
inline constexpr size_t kMaxCsvFields = 1'024;

struct CsvField {
  std::string text;
  bool is_quoted = false;

  bool is_null() const { return text.empty() && !is_quoted; }
  bool operator==(const CsvField&) const = default;
};

struct CsvRow {
  std::vector<CsvField> fields;
  uint64_t line = 0;    // number of the line where the row begins, from 1
  uint64_t offset = 0;  // offset of the first byte of the row
  uint64_t end = 0;     // offset of the next row
};

/// Appends a text, in quotes if it needs them or is empty.
void append_csv_text(std::string& row, std::string_view text);

/// Reads rows. Thread: one. `stream` outlives the reader.
class CsvReader {
 public:
  /// `name`: the name of the file in error messages.
  CsvReader(std::istream& stream, std::string name)
      : stream_(stream), name_(std::move(name)), buffer_(kBufferBytes, '\0') {}

  /// Returns false at the end. An empty line is a row of one null field. Errors: code failed, as
  /// "file:line: reason". After an error the reader must not be used.
  Result<bool> next(CsvRow& row);

 private:
  static constexpr size_t kBufferBytes = size_t{64} << 10;
  static constexpr int kEnd = -1;

  int peek();
  int take();
  Result<void> read_quoted(CsvField& field);
  Result<void> read_plain(CsvField& field);
  Result<void> add(CsvField& field, int c);
  std::unexpected<Error> wrong(const std::string& reason) const;

  std::istream& stream_;
  std::string name_;
  std::string buffer_;
  size_t at_ = 0;
  size_t size_ = 0;
  uint64_t offset_ = 0;
  uint64_t line_ = 1;
};

}  // namespace atolldb
