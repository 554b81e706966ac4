#include "ops/shell/value_format.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

#include "shared/base/base64.h"
#include "shared/base/check.h"
#include "shared/base/hex.h"

namespace atolldb::shell {
namespace {

using Bytes = std::vector<std::byte>;
using nlohmann::json;

constexpr std::string_view kExpected =
    "expected text, hex, json, i8 to i64, u8 to u64, f32, f64, char(N), bytes(N), or several with "
    "commas";

/// Removes the blanks between the tokens of a JSON document. Keeps the rest as it is, because a
/// parser would change large numbers and the order of members. REQUIRES: the document is valid.
std::string without_blanks(std::string_view document) {
  std::string compact;
  bool is_in_text = false;
  for (size_t i = 0; i < document.size(); ++i) {
    const char c = document[i];
    if (is_in_text && c == '\\') {
      compact += c;
      CHECK(i + 1 < document.size());
      compact += document[++i];
      continue;
    }
    if (c == '"') is_in_text = !is_in_text;
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (is_in_text || !is_blank) compact += c;
  }
  return compact;
}

std::unexpected<std::string> wrong(std::string text) { return std::unexpected(std::move(text)); }

std::string quoted(std::string_view text) {
  constexpr size_t kMost = 60;
  std::string shown = escape_text(std::as_bytes(std::span(text.substr(0, kMost))));
  if (text.size() > kMost) shown += "...";
  return "\"" + shown + "\"";
}

std::expected<Bytes, std::string> bytes_of_hex(std::string_view text) {
  if (auto bytes = from_hex(text)) return *std::move(bytes);
  if (text.size() % 2 != 0) {
    return wrong(quoted(text) + ": an even number of hexadecimal digits is expected");
  }
  size_t i = 0;
  while (from_hex(text.substr(i, 2))) i += 2;
  return wrong(quoted(text.substr(i, 2)) + ": is no pair of hexadecimal digits");
}

/// Returns the length of the UTF-8 character at the start of `text` if a terminal can show it,
/// else 0.
size_t shown_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return first >= 0x20 && first != 0x7f ? 1 : 0;
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (text.size() < bytes || !is_utf8(text.substr(0, bytes))) return 0;
  // U+0080 to U+009F are control characters.
  return first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0 ? 0 : bytes;
}

template <typename Number>
std::expected<Number, std::string> number_of(std::string_view text, const std::string& type) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) {
    return wrong(quoted(text) + ": is outside of the range of " + type);
  }
  if (error != std::errc() || end != text.data() + text.size()) {
    return wrong(quoted(text) + ": is not a number of type " + type);
  }
  return number;
}

template <typename Number>
std::string text_of(Number number) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  CHECK(error == std::errc());
  return {buffer.data(), end};
}

int64_t extended(uint64_t number, uint32_t bytes) {
  const uint32_t unused = 64 - 8 * bytes;
  return static_cast<int64_t>(number << unused) >> unused;
}

}  // namespace

std::string escape_text(std::span<const std::byte> bytes, bool escapes_commas) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::string shown;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = shown_character(text.substr(i));
    if (c == '\\') {
      shown += "\\\\";
    } else if (c == '\n') {
      shown += "\\n";
    } else if (c == '\r') {
      shown += "\\r";
    } else if (c == '\t') {
      shown += "\\t";
    } else if (length == 0 || (escapes_commas && c == ',')) {
      shown += "\\x" + to_hex(bytes.subspan(i, 1));
    } else {
      shown += text.substr(i, length);
      i += length;
      continue;
    }
    ++i;
  }
  return shown;
}

std::expected<Bytes, std::string> unescape_text(std::string_view text) {
  Bytes bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes.push_back(static_cast<std::byte>(text[i]));
      continue;
    }
    const char kind = i + 1 < text.size() ? text[i + 1] : '\0';
    ++i;
    switch (kind) {
      case '\\':
        bytes.push_back(std::byte{'\\'});
        break;
      case 'n':
        bytes.push_back(std::byte{'\n'});
        break;
      case 'r':
        bytes.push_back(std::byte{'\r'});
        break;
      case 't':
        bytes.push_back(std::byte{'\t'});
        break;
      case 'x': {
        const auto byte = bytes_of_hex(text.substr(i + 1, 2));
        if (!byte || byte->size() != 1) {
          return wrong(quoted(text.substr(i - 1, 4)) + ": two hexadecimal digits must follow \\x");
        }
        bytes.push_back(byte->front());
        i += 2;
        break;
      }
      default:
        return wrong(quoted(text.substr(i - 1, 2)) +
                     ": unknown escape: use \\\\, \\n, \\r, \\t or \\xNN");
    }
  }
  return bytes;
}

std::expected<ValueFormat::Field, std::string> ValueFormat::parse_field(std::string_view text,
                                                                        Part part) {
  static constexpr std::pair<std::string_view, std::pair<Type, uint32_t>> kSimple[] = {
      {"text", {Type::text, 0}},   {"hex", {Type::hex, 0}},     {"json", {Type::json, 0}},
      {"i8", {Type::integer, 1}},  {"i16", {Type::integer, 2}}, {"i32", {Type::integer, 4}},
      {"i64", {Type::integer, 8}}, {"u8", {Type::natural, 1}},  {"u16", {Type::natural, 2}},
      {"u32", {Type::natural, 4}}, {"u64", {Type::natural, 8}}, {"f32", {Type::real, 4}},
      {"f64", {Type::real, 8}},
  };
  for (const auto& [name, kind] : kSimple) {
    if (text != name) continue;
    const auto [type, bytes] = kind;
    if (part == Part::key && (type == Type::integer || type == Type::real)) {
      return wrong("\"" + std::string(text) +
                   "\": numbers in keys are unsigned, so that the order of the bytes is that of "
                   "the numbers: use u8 to u64");
    }
    return Field{type, bytes, std::string(text)};
  }
  const bool is_char = text.starts_with("char(");
  if ((is_char || text.starts_with("bytes(")) && text.ends_with(')')) {
    const size_t open = text.find('(');
    const auto count = number_of<uint32_t>(text.substr(open + 1, text.size() - open - 2), "N");
    if (count && *count >= 1 && *count <= kMaxFieldBytes) {
      return Field{is_char ? Type::padded : Type::bytes, *count, std::string(text)};
    }
    return wrong(quoted(text) + ": N is a number from 1 to " + std::to_string(kMaxFieldBytes));
  }
  return wrong(quoted(text) + ": is no format: " + std::string(kExpected));
}

std::expected<ValueFormat, std::string> ValueFormat::parse(std::string_view text, Part part) {
  ValueFormat format;
  format.name_ = std::string(text);
  format.part_ = part;
  for (size_t at = 0; at <= text.size();) {
    const size_t comma = std::min(text.find(',', at), text.size());
    auto field = parse_field(text.substr(at, comma - at), part);
    if (!field) return std::unexpected(std::move(field.error()));
    if (!format.fields_.empty() && format.fields_.back().bytes == 0) {
      return wrong(format.fields_.back().name +
                   ": takes all bytes up to the end, so it must be the last field");
    }
    if (format.fields_.size() == kMaxFormatFields) {
      return wrong("a format has at most " + std::to_string(kMaxFormatFields) + " fields");
    }
    format.fields_.push_back(*std::move(field));
    at = comma + 1;
  }
  return format;
}

ValueFormat ValueFormat::plain(Part part) {
  auto format = parse("text", part);
  CHECK(format.has_value());
  return *std::move(format);
}

uint64_t ValueFormat::load(std::span<const std::byte> bytes) const {
  DCHECK(!bytes.empty() && bytes.size() <= sizeof(uint64_t));
  uint64_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const std::byte byte = part_ == Part::key ? bytes[i] : bytes[bytes.size() - 1 - i];
    number = number << 8 | std::to_integer<uint64_t>(byte);
  }
  return number;
}

void ValueFormat::store(uint64_t number, uint32_t bytes, Bytes& out) const {
  for (uint32_t i = 0; i < bytes; ++i) {
    const uint32_t place = part_ == Part::key ? bytes - 1 - i : i;
    out.push_back(static_cast<std::byte>(number >> (8 * place)));
  }
}

std::expected<void, std::string> ValueFormat::encode_number(const Field& field,
                                                            std::string_view text,
                                                            Bytes& out) const {
  const auto outside = [&] {
    return wrong(quoted(text) + ": is outside of the range of " + field.name);
  };
  if (field.type == Type::integer) {
    const auto number = number_of<int64_t>(text, field.name);
    if (!number) return std::unexpected(number.error());
    if (extended(static_cast<uint64_t>(*number), field.bytes) != *number) return outside();
    store(static_cast<uint64_t>(*number), field.bytes, out);
  } else if (field.type == Type::natural) {
    const auto number = number_of<uint64_t>(text, field.name);
    if (!number) return std::unexpected(number.error());
    if (field.bytes < 8 && *number >> (8 * field.bytes) != 0) return outside();
    store(*number, field.bytes, out);
  } else if (field.bytes == 4) {
    const auto number = number_of<float>(text, field.name);
    if (!number) return std::unexpected(number.error());
    store(std::bit_cast<uint32_t>(*number), 4, out);
  } else {
    const auto number = number_of<double>(text, field.name);
    if (!number) return std::unexpected(number.error());
    store(std::bit_cast<uint64_t>(*number), 8, out);
  }
  return {};
}

std::expected<Bytes, std::string> ValueFormat::encode_bytes(const Field& field,
                                                            std::string_view text) {
  if (field.type == Type::hex || field.type == Type::bytes) {
    auto bytes = bytes_of_hex(text);
    if (!bytes || field.type == Type::hex || bytes->size() == field.bytes) return bytes;
    return wrong(quoted(text) + ": has " + std::to_string(bytes->size()) + " bytes, " + field.name +
                 " takes " + std::to_string(field.bytes));
  }
  if (field.type == Type::json) {
    if (text.size() > kMaxJsonText) {
      return wrong(quoted(text) + ": a JSON document has at most " + std::to_string(kMaxJsonText) +
                   " bytes");
    }
    if (!json::accept(text)) return wrong(quoted(text) + ": is not a JSON document");
    const std::string compact = without_blanks(text);
    const auto bytes = std::as_bytes(std::span(compact));
    return Bytes(bytes.begin(), bytes.end());
  }
  auto bytes = unescape_text(text);
  if (!bytes || field.type == Type::text) return bytes;
  CHECK(field.type == Type::padded);
  if (bytes->size() > field.bytes) {
    return wrong(quoted(text) + ": has " + std::to_string(bytes->size()) + " bytes, the limit of " +
                 field.name + " is " + std::to_string(field.bytes));
  }
  bytes->resize(field.bytes);
  return bytes;
}

std::expected<void, std::string> ValueFormat::encode_field(const Field& field,
                                                           std::string_view text,
                                                           Bytes& out) const {
  const bool is_number =
      field.type == Type::integer || field.type == Type::natural || field.type == Type::real;
  if (is_number) return encode_number(field, text, out);
  const auto bytes = encode_bytes(field, text);
  if (!bytes) return std::unexpected(bytes.error());
  out.insert(out.end(), bytes->begin(), bytes->end());
  return {};
}

std::expected<Bytes, std::string> ValueFormat::encode_some(std::string_view text, bool all) const {
  Bytes out;
  size_t at = 0;
  size_t count = 0;
  // An empty prefix has no field.
  while (count < fields_.size() && (all || at < text.size())) {
    const Field& field = fields_[count];
    const bool is_last = count + 1 == fields_.size();
    const size_t comma = is_last ? text.size() : std::min(text.find(',', at), text.size());
    if (at > text.size()) {
      return wrong(quoted(text) + ": has " + std::to_string(count) + " fields, the format \"" +
                   name_ + "\" has " + std::to_string(fields_.size()));
    }
    const auto encoded = encode_field(field, text.substr(at, comma - at), out);
    if (!encoded) return std::unexpected(encoded.error());
    // The last part of a prefix may be the begin of a text.
    if (!all && field.type == Type::padded && comma == text.size()) {
      while (!out.empty() && out.back() == std::byte{0}) out.pop_back();
    }
    at = comma + 1;
    ++count;
  }
  return out;
}

std::expected<Bytes, std::string> ValueFormat::encode(std::string_view text) const {
  return encode_some(text, true);
}

std::expected<Bytes, std::string> ValueFormat::encode_prefix(std::string_view text) const {
  return encode_some(text, false);
}

std::expected<std::vector<std::span<const std::byte>>, std::string> ValueFormat::divide(
    std::span<const std::byte> bytes) const {
  size_t fixed = 0;
  for (const Field& field : fields_) fixed += field.bytes;
  const bool has_rest = fields_.back().bytes == 0;
  if (bytes.size() < fixed || (bytes.size() > fixed && !has_rest)) {
    return wrong("a " + std::string(part_ == Part::key ? "key" : "value") + " of " +
                 std::to_string(bytes.size()) + " bytes does not have the format \"" + name_ +
                 "\", which has " + std::to_string(fixed) + (has_rest ? " or more" : "") +
                 " bytes: choose another one, for example text or hex");
  }
  std::vector<std::span<const std::byte>> parts;
  for (const Field& field : fields_) {
    const size_t size = field.bytes == 0 ? bytes.size() : field.bytes;
    parts.push_back(bytes.first(size));
    bytes = bytes.subspan(size);
  }
  return parts;
}

std::expected<std::string, std::string> ValueFormat::decode_field(
    const Field& field, std::span<const std::byte> bytes) const {
  const bool is_last = &field == &fields_.back();
  switch (field.type) {
    case Type::text:
      return escape_text(bytes);
    case Type::padded: {
      const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
      size_t size = bytes.size();
      while (size > 0 && is_zero(bytes[size - 1])) --size;
      return escape_text(bytes.first(size), !is_last);
    }
    case Type::hex:
    case Type::bytes:
      return to_hex(bytes);
    case Type::json: {
      const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      if (!json::accept(text)) {
        return wrong(quoted(text) + ": is not a JSON document: choose the format text or hex");
      }
      return without_blanks(text);
    }
    case Type::integer:
      return text_of(extended(load(bytes), field.bytes));
    case Type::natural:
      return text_of(load(bytes));
    case Type::real:
      if (field.bytes == 4) {
        return text_of(std::bit_cast<float>(static_cast<uint32_t>(load(bytes))));
      }
      return text_of(std::bit_cast<double>(load(bytes)));
  }
  CHECK(false);
}

std::expected<std::string, std::string> ValueFormat::decode(
    std::span<const std::byte> bytes) const {
  const auto parts = divide(bytes);
  if (!parts) return std::unexpected(parts.error());
  std::string all;
  for (size_t i = 0; i < fields_.size(); ++i) {
    const auto text = decode_field(fields_[i], (*parts)[i]);
    if (!text) return text;
    all += (i == 0 ? "" : ",") + *text;
  }
  return all;
}

std::expected<json, std::string> ValueFormat::to_json(std::span<const std::byte> bytes) const {
  const auto parts = divide(bytes);
  if (!parts) return std::unexpected(parts.error());
  json values = json::array();
  for (size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    const auto text = decode_field(field, (*parts)[i]);
    if (!text) return std::unexpected(text.error());
    const bool is_number =
        field.type == Type::integer || field.type == Type::natural || field.type == Type::real;
    const json value =
        is_number || field.type == Type::json ? json::parse(*text, nullptr, false) : json(*text);
    // JSON has no text for infinity and NaN, so these numbers become strings.
    values.push_back(value.is_discarded() ? json(*text) : value);
  }
  return fields_.size() == 1 ? values.front() : values;
}

}  // namespace atolldb::shell
