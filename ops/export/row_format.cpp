#include "ops/export/row_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstring>
#include <iterator>
#include <optional>
#include <utility>

#include "shared/base/base64.h"
#include "shared/base/check.h"
#include "shared/base/hex.h"

namespace atolldb {
namespace {

using RecordBytes = std::span<const std::byte>;
using Done = std::expected<void, std::string>;

constexpr size_t kMaxShownFieldBytes = 80;
constexpr uint64_t kMicrosecondsPerSecond = 1'000'000;
constexpr uint32_t kFractionDigits = 6;  // of timestamps
constexpr int kMinYear = 1;
constexpr int kMaxYear = 9'999;

std::unexpected<std::string> bad(std::string reason) { return std::unexpected(std::move(reason)); }

bool is_signed(const TableColumn& column) {
  return column.type == ColumnType::integer || column.type == ColumnType::decimal ||
         column.type == ColumnType::timestamp;
}

bool is_stored_number(const TableColumn& column) {
  return is_signed(column) || column.type == ColumnType::natural;
}

/// Reads a little-endian number, and extends it to 64 bits.
uint64_t load_number(RecordBytes bytes, bool with_sign) {
  CHECK(bytes.size() >= 1 && bytes.size() <= 8);
  uint64_t number = 0;
  std::memcpy(&number, bytes.data(), bytes.size());
  const auto unused = static_cast<uint32_t>(64 - 8 * bytes.size());
  if (!with_sign) return number;
  return static_cast<uint64_t>(static_cast<int64_t>(number << unused) >> unused);
}

void store_number(std::span<std::byte> bytes, uint64_t number) {
  CHECK(bytes.size() >= 1 && bytes.size() <= 8);
  std::memcpy(bytes.data(), &number, bytes.size());
}

uint64_t load_big_endian(std::string_view bytes) {
  CHECK(bytes.size() <= 8);
  uint64_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

uint64_t low_bits(uint32_t count) { return count == 64 ? UINT64_MAX : (uint64_t{1} << count) - 1; }

uint64_t power_of_ten(uint32_t exponent) {
  uint64_t power = 1;
  for (uint32_t i = 0; i < exponent; ++i) power *= 10;
  return power;
}

/// Latin-1 characters are the first 256 of Unicode.
std::string utf8_of_latin1(std::string_view text) {
  std::string utf8;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      utf8 += c;
    } else {
      utf8 += static_cast<char>(0xc0 | byte >> 6);
      utf8 += static_cast<char>(0x80 | (byte & 0x3f));
    }
  }
  return utf8;
}

/// REQUIRES: the text is UTF-8. Returns nothing if Latin-1 lacks a character.
std::optional<std::string> latin1_of_utf8(std::string_view text) {
  std::string latin1;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      latin1 += text[i];
    } else {
      if (byte > 0xc3) return std::nullopt;
      CHECK(i + 1 < text.size());
      latin1 +=
          static_cast<char>((byte & 0x03) << 6 | (static_cast<unsigned char>(text[++i]) & 0x3f));
    }
  }
  return latin1;
}

Done append_text(const TableColumn& column, std::string_view stored, std::string& row) {
  if (stored.size() > column.size) {
    return bad(fmt::format("the text has {} bytes, the limit of {} is {}", stored.size(),
                           column.type_name, column.size));
  }
  if (stored.contains('\0')) return bad("the text has a zero byte: use bytes(n)");
  if (column.is_latin1) {
    append_csv_text(row, utf8_of_latin1(stored));
    return {};
  }
  if (!is_utf8(stored)) return bad("the text is not UTF-8: use bytes(n), or encoding = \"latin1\"");
  append_csv_text(row, stored);
  return {};
}

Done append_decimal(const TableColumn& column, uint64_t number, std::string& row) {
  const bool is_negative = static_cast<int64_t>(number) < 0;
  const uint64_t size = is_negative ? 0 - number : number;
  if (size >= power_of_ten(column.precision)) {
    return bad(fmt::format("{} has more than the {} digits of {}", static_cast<int64_t>(number),
                           column.precision, column.type_name));
  }
  const uint64_t unit = power_of_ten(column.scale);
  fmt::format_to(std::back_inserter(row), "{}{}", is_negative ? "-" : "", size / unit);
  if (column.scale != 0) {
    fmt::format_to(std::back_inserter(row), ".{:0{}}", size % unit, column.scale);
  }
  return {};
}

Done append_timestamp(uint64_t number, std::string& row) {
  using namespace std::chrono;
  const sys_time<microseconds> time{microseconds(static_cast<int64_t>(number))};
  const sys_days day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  // Compares the time and not the year, because the year of a date has only 16 bits.
  constexpr sys_days kFirst{std::chrono::year{kMinYear} / January / 1};
  constexpr sys_days kEnd{std::chrono::year{kMaxYear + 1} / January / 1};
  if (time < kFirst || time >= kEnd) {
    return bad(fmt::format("{} microseconds are not in the years {} to {}",
                           static_cast<int64_t>(number), kMinYear, kMaxYear));
  }
  fmt::format_to(std::back_inserter(row), "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:06}Z",
                 static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                 static_cast<unsigned>(date.day()), clock.hours().count(), clock.minutes().count(),
                 clock.seconds().count(), clock.subseconds().count());
  return {};
}

/// Writes the shortest text that gives the same number again.
template <typename Real>
void append_real(RecordBytes bytes, std::string& row) {
  CHECK(bytes.size() == sizeof(Real));
  Real number;
  std::memcpy(&number, bytes.data(), sizeof(number));
  std::array<char, 64> text;
  const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), number);
  CHECK(problem == std::errc{});
  row.append(text.data(), end);
}

Done append_stored_number(const TableColumn& column, uint64_t number, std::string& row) {
  if (column.null && *column.null == number) return {};  // null is an empty field without quotes
  if (column.type == ColumnType::decimal) return append_decimal(column, number, row);
  if (column.type == ColumnType::timestamp) return append_timestamp(number, row);
  if (column.type == ColumnType::natural) {
    fmt::format_to(std::back_inserter(row), "{}", number);
  } else {
    fmt::format_to(std::back_inserter(row), "{}", static_cast<int64_t>(number));
  }
  return {};
}

/// `record`: the whole payload or key. REQUIRES: it has the size that the schema says.
Done append_value(const TableColumn& column, RecordBytes record, std::string& row) {
  const auto as_text = [](RecordBytes bytes) {
    return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  if (column.type == ColumnType::text && column.length == TextLength::rest) {
    return append_text(column, as_text(record.subspan(column.offset)), row);
  }
  const RecordBytes bytes = record.subspan(column.offset, column.size);
  if (is_stored_number(column)) {
    return append_stored_number(column, load_number(bytes, is_signed(column)), row);
  }
  if (column.type == ColumnType::real) {
    column.size == sizeof(float) ? append_real<float>(bytes, row) : append_real<double>(bytes, row);
    return {};
  }
  if (column.type == ColumnType::bytes) {
    row += to_hex(bytes);
    return {};
  }
  CHECK(column.type == ColumnType::text);
  std::string_view text = as_text(bytes);
  if (column.length == TextLength::member) {
    const uint64_t length =
        load_number(record.subspan(column.length_offset, column.length_bytes), false);
    if (length > column.size) {
      return bad(fmt::format("its length is {}, the limit {}", length, column.size));
    }
    return append_text(column, text.substr(0, length), row);
  }
  text = text.substr(0, text.find_last_not_of('\0') + 1);
  return append_text(column, text, row);
}

Done append_index(const TableSchema& schema, std::string_view key, std::string& row) {
  uint64_t rest = load_big_endian(key);
  for (const TableColumn& column : schema.columns) {
    if (!column.is_key) break;
    const uint64_t value = rest / column.stride;
    rest %= column.stride;
    if (value > low_bits(column.bits) || low_bits(column.bits) - value < column.first) {
      return bad(fmt::format("{}: index {} gives more than {} can hold", column.name,
                             load_big_endian(key), column.type_name));
    }
    if (&column != &schema.columns.front()) row += ',';
    fmt::format_to(std::back_inserter(row), "{}", value + column.first);
  }
  if (rest == 0) return {};
  return bad(
      fmt::format("index {} lies between two keys: correct the strides", load_big_endian(key)));
}

Done append_key_number(const TableColumn& column, std::string_view key, std::string& row) {
  const uint64_t word = load_big_endian(key.substr(column.offset, column.size));
  fmt::format_to(std::back_inserter(row), "{}", word >> column.shift & low_bits(column.bits));
  return {};
}

Done check_size(const TableSchema& schema, bool is_key, size_t found) {
  const uint32_t expected = is_key ? schema.key_bytes : schema.payload_bytes;
  const bool has_rest = schema.has_rest(is_key);
  if (found == expected || (has_rest && found > expected)) return {};
  return bad(fmt::format("the {} has {} bytes, the schema says {}{}", is_key ? "key" : "payload",
                         found, expected, has_rest ? " or more" : ""));
}

std::string shown(const CsvField& field) {
  std::string text = field.text.substr(0, kMaxShownFieldBytes);
  if (text.size() < field.text.size()) text += "...";
  return "\"" + text + "\"";
}

/// Parses a whole text of digits.
template <typename Number>
Done parse_whole(std::string_view text, Number& number, const char* expected) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && end == text.data() + text.size()) return {};
  if (problem == std::errc::result_out_of_range) return bad("does not fit into 64 bits");
  return bad(fmt::format("expected {}", expected));
}

std::expected<uint64_t, std::string> parse_natural(std::string_view text, uint64_t most) {
  uint64_t number = 0;
  if (Done done = parse_whole(text, number, "digits"); !done) return bad(done.error());
  if (number <= most) return number;
  return bad(fmt::format("expected at most {}", most));
}

std::expected<uint64_t, std::string> parse_integer(const TableColumn& column,
                                                   std::string_view text) {
  int64_t number = 0;
  if (Done done = parse_whole(text, number, "digits, with - before them if negative"); !done) {
    return bad(done.error());
  }
  const auto high = static_cast<int64_t>(low_bits(column.size * 8 - 1));
  if (number >= -high - 1 && number <= high) return static_cast<uint64_t>(number);
  return bad(fmt::format("expected {} to {}", -high - 1, high));
}

std::expected<uint64_t, std::string> parse_decimal_text(const TableColumn& column,
                                                        std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  const size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view part =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  const auto is_digits = [](std::string_view digits) {
    return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  };
  const bool has_part = point == std::string_view::npos || !part.empty();
  if (whole.empty() || !has_part || !is_digits(whole) || !is_digits(part)) {
    return bad("expected a decimal number like -12.50");
  }
  if (part.size() > column.scale) {
    return bad(fmt::format("expected at most {} decimals", column.scale));
  }
  std::string digits(whole.substr(std::min(whole.find_first_not_of('0'), whole.size())));
  digits += part;
  digits.append(column.scale - part.size(), '0');
  const size_t first = std::min(digits.find_first_not_of('0'), digits.size());
  if (digits.size() - first > column.precision) {
    return bad(fmt::format("expected at most {} digits", column.precision));
  }
  uint64_t number = 0;
  for (const char c : digits) number = number * 10 + static_cast<uint64_t>(c - '0');
  return is_negative ? 0 - number : number;
}

/// Parses exactly `count` digits at the begin of the text, followed by `after`. Removes both.
bool take_digits(std::string_view& text, size_t count, std::string_view after, int& number) {
  if (text.size() < count + after.size()) return false;
  const char* end = text.data() + count;
  const auto [stop, problem] = std::from_chars(text.data(), end, number);
  if (problem != std::errc{} || stop != end || number < 0) return false;
  if (text.substr(count, after.size()) != after) return false;
  text.remove_prefix(count + after.size());
  return true;
}

std::expected<uint64_t, std::string> parse_timestamp(std::string_view text) {
  using namespace std::chrono;
  std::string normal(text);
  if (normal.size() > 10 && normal[10] == ' ') normal[10] = 'T';
  std::string_view rest = normal;
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0;
  const bool has_form = take_digits(rest, 4, "-", y) && take_digits(rest, 2, "-", mo) &&
                        take_digits(rest, 2, "T", d) && take_digits(rest, 2, ":", h) &&
                        take_digits(rest, 2, ":", mi) && take_digits(rest, 2, "", s);
  uint64_t fraction = 0;
  bool is_good = has_form;
  if (rest.ends_with('Z')) rest.remove_suffix(1);
  if (is_good && !rest.empty()) {
    std::string digits(rest.substr(1));
    is_good = rest.front() == '.' && !digits.empty() && digits.size() <= kFractionDigits;
    digits.resize(kFractionDigits, '0');
    is_good = is_good && parse_whole(digits, fraction, "").has_value();
  }
  const year_month_day date{year{y}, month{static_cast<unsigned>(mo)},
                            day{static_cast<unsigned>(d)}};
  if (!is_good || y < kMinYear || !date.ok() || h > 23 || mi > 59 || s > 59) {
    return bad("expected a time like 2026-11-23T04:05:06.000000Z, in UTC");
  }
  const sys_time<microseconds> time = sys_days(date) + hours(h) + minutes(mi) + seconds(s) +
                                      microseconds(static_cast<int64_t>(fraction));
  static_assert(kMicrosecondsPerSecond == microseconds(seconds(1)).count());
  return static_cast<uint64_t>(time.time_since_epoch().count());
}

std::expected<uint64_t, std::string> parse_stored_number(const TableColumn& column,
                                                         const CsvField& field) {
  if (field.is_null()) {
    if (column.null) return *column.null;
    return bad("is null, but the column has no value for null");
  }
  std::expected<uint64_t, std::string> number = bad("");
  if (column.type == ColumnType::natural) {
    number = parse_natural(field.text, low_bits(column.size * 8));
  } else if (column.type == ColumnType::integer) {
    number = parse_integer(column, field.text);
  } else if (column.type == ColumnType::decimal) {
    number = parse_decimal_text(column, field.text);
  } else {
    number = parse_timestamp(field.text);
  }
  if (number && column.null && *number == *column.null) {
    return bad("this value stands for null in the records: leave the field empty");
  }
  return number;
}

template <typename Real>
Done parse_real(std::string_view text, std::span<std::byte> into) {
  CHECK(into.size() == sizeof(Real));
  Real number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc::result_out_of_range) return bad("does not fit into the type");
  if (problem != std::errc{} || end != text.data() + text.size()) {
    return bad("expected a number like -1.5e3, inf or nan");
  }
  std::memcpy(into.data(), &number, sizeof(number));
  return {};
}

Done parse_hex_text(std::string_view text, std::span<std::byte> into) {
  if (text.size() != 2 * into.size()) {
    return bad(fmt::format("expected {} hexadecimal digits, got {} characters", 2 * into.size(),
                           text.size()));
  }
  const auto bytes = from_hex(text);
  if (!bytes) return bad("expected hexadecimal digits");
  std::ranges::copy(*bytes, into.begin());
  return {};
}

/// Parses a text into the record. If the text is the rest of the record, `record` grows.
Done parse_text(const TableColumn& column, const CsvField& field, std::vector<std::byte>& record) {
  if (field.text.contains('\0')) return bad("the text has a zero byte");
  if (!is_utf8(field.text)) return bad("the text is not UTF-8");
  std::string stored = field.text;
  if (column.is_latin1) {
    auto latin1 = latin1_of_utf8(stored);
    if (!latin1) return bad("the text has a character that ISO 8859-1 lacks");
    stored = *std::move(latin1);
  }
  if (stored.size() > column.size) {
    return bad(fmt::format("the text has {} bytes, the limit of {} is {}", stored.size(),
                           column.type_name, column.size));
  }
  const auto bytes = std::as_bytes(std::span(stored));
  if (column.length == TextLength::rest) {
    CHECK(record.size() == column.offset);
    record.insert(record.end(), bytes.begin(), bytes.end());
    return {};
  }
  std::ranges::copy(bytes, record.begin() + column.offset);
  if (column.length == TextLength::member) {
    store_number(std::span(record).subspan(column.length_offset, column.length_bytes),
                 stored.size());
  }
  return {};
}

Done parse_value(const TableColumn& column, const CsvField& field, std::vector<std::byte>& record) {
  if (column.type == ColumnType::text) return parse_text(column, field, record);
  const auto into = std::span(record).subspan(column.offset, column.size);
  if (column.type == ColumnType::bytes) return parse_hex_text(field.text, into);
  if (column.type == ColumnType::real) {
    return column.size == sizeof(float) ? parse_real<float>(field.text, into)
                                        : parse_real<double>(field.text, into);
  }
  const auto number = parse_stored_number(column, field);
  if (!number) return bad(number.error());
  store_number(into, *number);
  return {};
}

Done parse_key_value(const TableColumn& column, const CsvField& field,
                     std::vector<std::byte>& key) {
  if (column.type != ColumnType::natural) return parse_value(column, field, key);
  const auto number = parse_natural(field.text, low_bits(column.bits));
  if (!number) return bad(number.error());
  const uint64_t word = *number << column.shift;
  for (uint32_t i = 0; i < column.size; ++i) {
    key[column.offset + i] |= static_cast<std::byte>(word >> 8 * (column.size - 1 - i) & 255);
  }
  return {};
}

/// Adds the part that this column has in an index. `room`: stride of the previous column; 0: there
/// is none.
Done add_to_index(const TableColumn& column, const CsvField& field, uint64_t room,
                  uint64_t& index) {
  const auto number = parse_natural(field.text, low_bits(column.bits));
  if (!number) return bad(number.error());
  if (*number < column.first) return bad(fmt::format("expected at least {}", column.first));
  const uint64_t steps = *number - column.first;
  const uint64_t most = (room == 0 ? UINT64_MAX - index : room - 1) / column.stride;
  if (steps > most) return bad(fmt::format("expected at most {}", column.first + most));
  uint64_t sum = 0;
  if (__builtin_add_overflow(index, steps * column.stride, &sum)) {
    return bad("the index does not fit into 64 bits");
  }
  index = sum;
  return {};
}

std::string string_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

std::string header_row(const TableSchema& schema) {
  std::string row;
  for (const TableColumn& column : schema.columns) {
    if (!row.empty()) row += ',';
    row += column.name;
  }
  return row + '\n';
}

std::expected<void, std::string> append_row(const TableSchema& schema, std::string_view key,
                                            std::span<const std::byte> payload, std::string& row) {
  const bool has_index = schema.type == StorageType::array;
  if (schema.type != StorageType::sequential) {
    if (Done sized = check_size(schema, true, key.size()); !sized) return sized;
  }
  if (Done sized = check_size(schema, false, payload.size()); !sized) return sized;
  const auto key_bytes = std::as_bytes(std::span(key.data(), key.size()));
  if (has_index) {
    if (Done done = append_index(schema, key, row); !done) return done;
  }
  for (const TableColumn& column : schema.columns) {
    if (column.is_key && has_index) continue;
    if (&column != &schema.columns.front()) row += ',';
    const bool is_key_number = column.is_key && column.type == ColumnType::natural;
    const Done done = is_key_number
                          ? append_key_number(column, key, row)
                          : append_value(column, column.is_key ? key_bytes : payload, row);
    if (!done) return bad(column.name + ": " + done.error());
  }
  row += '\n';
  return {};
}

std::expected<FieldOrder, std::string> order_of_fields(const TableSchema& schema,
                                                       const std::vector<CsvField>& header) {
  FieldOrder order;
  for (const CsvField& field : header) {
    const auto found = std::ranges::find(schema.columns, field.text, &TableColumn::name);
    if (found == schema.columns.end()) {
      return bad(fmt::format("{}: table \"{}\" has no such column", shown(field), schema.name));
    }
    const auto index = static_cast<size_t>(found - schema.columns.begin());
    if (std::ranges::find(order, index) != order.end()) {
      return bad(fmt::format("{}: the column is there twice", shown(field)));
    }
    order.push_back(index);
  }
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    if (std::ranges::find(order, i) != order.end()) continue;
    return bad(fmt::format("column \"{}\" of table \"{}\" is missing in the first line",
                           schema.columns[i].name, schema.name));
  }
  return order;
}

std::expected<TableRecord, std::string> parse_row(const TableSchema& schema,
                                                  const FieldOrder& order,
                                                  const std::vector<CsvField>& fields) {
  CHECK(order.size() == schema.columns.size());
  if (fields.size() != order.size()) {
    return bad(fmt::format("expected {} fields, got {}", order.size(), fields.size()));
  }
  std::vector<const CsvField*> of_column(order.size());
  for (size_t i = 0; i < order.size(); ++i) of_column[order[i]] = &fields[i];
  std::vector<std::byte> key(is_tree(schema.type) ? schema.key_bytes : 0);
  std::vector<std::byte> payload(schema.payload_bytes);
  uint64_t index = 0;
  uint64_t room = 0;
  for (size_t i = 0; i < schema.columns.size(); ++i) {
    const TableColumn& column = schema.columns[i];
    const CsvField& field = *of_column[i];
    Done done;
    if (!column.is_key) {
      done = parse_value(column, field, payload);
    } else if (schema.type == StorageType::array) {
      done = add_to_index(column, field, room, index);
      room = column.stride;
    } else {
      done = parse_key_value(column, field, key);
    }
    if (!done) return bad(fmt::format("{}: {}: {}", column.name, shown(field), done.error()));
  }
  if (schema.type == StorageType::array) {
    key.resize(sizeof(index));
    for (size_t i = 0; i < sizeof(index); ++i) {
      key[i] = static_cast<std::byte>(index >> 8 * (sizeof(index) - 1 - i) & 255);
    }
  }
  return TableRecord{string_of(key), std::move(payload)};
}

}  // namespace atolldb
