#include "ops/export/csv.h"

#include <fmt/format.h>

#include <utility>

#include "ops/export/table_schema.h"
#include "shared/base/try.h"

namespace atolldb {

static_assert(kMaxCsvFieldBytes >= 2 * size_t{kMaxColumnBytes});
static_assert(kMaxCsvFields >= kMaxTableColumns);

void append_csv_text(std::string& row, std::string_view text) {
  if (!text.empty() && text.find_first_of("\",\r\n") == std::string_view::npos) {
    row += text;
    return;
  }
  row += '"';
  for (const char c : text) {
    if (c == '"') row += '"';
    row += c;
  }
  row += '"';
}

int CsvReader::peek() {
  if (at_ == size_) {
    stream_.read(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    at_ = 0;
    size_ = static_cast<size_t>(stream_.gcount());
    if (size_ == 0) return kEnd;
  }
  return static_cast<unsigned char>(buffer_[at_]);
}

int CsvReader::take() {
  const int c = peek();
  if (c == kEnd) return c;
  ++at_;
  ++offset_;
  if (c == '\n') ++line_;
  return c;
}

std::unexpected<Error> CsvReader::wrong(const std::string& reason) const {
  return make_error(ExitCode::failed, fmt::format("{}:{}: {}", name_, line_, reason));
}

Result<void> CsvReader::add(CsvField& field, int c) {
  if (field.text.size() == kMaxCsvFieldBytes) {
    return wrong(fmt::format("a field has more than {} bytes: close its quotes, or shorten it",
                             kMaxCsvFieldBytes));
  }
  field.text += static_cast<char>(c);
  return {};
}

Result<void> CsvReader::read_quoted(CsvField& field) {
  const uint64_t begun = line_;
  field.is_quoted = true;
  take();
  for (;;) {
    const int c = take();
    if (c == kEnd) {
      return wrong(
          fmt::format("the quotes that open in line {} are not closed: the file is "
                      "incomplete",
                      begun));
    }
    if (c == '"' && peek() != '"') break;
    if (c == '"') take();
    ATOLL_TRY(add(field, c));
  }
  const int after = peek();
  if (after == ',' || after == '\n' || after == '\r' || after == kEnd) return {};
  return wrong("text follows closing quotes: write a quote within quotes twice");
}

Result<void> CsvReader::read_plain(CsvField& field) {
  for (;;) {
    const int c = peek();
    if (c == ',' || c == '\n' || c == '\r' || c == kEnd) return {};
    if (c == '"') return wrong("a quote is within a field: put the field in quotes");
    ATOLL_TRY(add(field, take()));
  }
}

Result<bool> CsvReader::next(CsvRow& row) {
  row.fields.clear();
  row.line = line_;
  row.offset = offset_;
  if (peek() == kEnd) {
    if (stream_.bad()) return wrong("cannot be read");
    return false;
  }
  for (;;) {
    if (row.fields.size() == kMaxCsvFields) {
      return wrong(fmt::format("the row has more than {} fields", kMaxCsvFields));
    }
    CsvField& field = row.fields.emplace_back();
    ATOLL_TRY(peek() == '"' ? read_quoted(field) : read_plain(field));
    const int c = take();
    if (c == ',') continue;
    if (c == '\r' && take() != '\n') return wrong("a carriage return without a line feed");
    if (c == kEnd && stream_.bad()) return wrong("cannot be read");
    row.end = offset_;
    return true;
  }
}

}  // namespace atolldb
