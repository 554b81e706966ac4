// Keys and values as text: how users write the bytes of a record on the command line, and how the
// commands print them.
//
//   text      UTF-8; other bytes as \xNN, a backslash as \\, and \n, \r, \t
//   hex       two hexadecimal digits per byte
//   json      one JSON document, stored without blanks
//   i8 to i64, u8 to u64, f32, f64
//             numbers; little-endian in values, big-endian and unsigned in keys
//   char(N)   text of at most N bytes; zero bytes follow it
//   bytes(N)  N bytes in hexadecimal digits
//   A,B,...   several fields one after the other; text, hex and json only as the last field
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb::shell {

inline constexpr size_t kMaxFormatFields = 32;
/// Largest N of char(N) and bytes(N): the size of the largest value.
inline constexpr uint32_t kMaxFieldBytes = 2'048;
/// Maximum size of a JSON document as users write it, with blanks. It bounds the depth, too.
inline constexpr size_t kMaxJsonText = 8'192;

class ValueFormat {
 public:
  enum class Part : uint8_t { key, value };

  /// Parses a list of fields. The error says which field is wrong, and what is expected.
  static std::expected<ValueFormat, std::string> parse(std::string_view text, Part part);
  /// The format `text`.
  static ValueFormat plain(Part part);

  /// Returns the bytes of `text`, or an error that names the field and the wrong text.
  std::expected<std::vector<std::byte>, std::string> encode(std::string_view text) const;
  /// Does the same, but the last fields may be missing: for the common prefix of many keys.
  std::expected<std::vector<std::byte>, std::string> encode_prefix(std::string_view text) const;
  /// Returns the text of `bytes`, or an error if they do not have this format. For bytes that
  /// `encode` has returned, `encode` of the text returns them again.
  std::expected<std::string, std::string> decode(std::span<const std::byte> bytes) const;
  /// Returns a number, a string or a JSON document; for several fields an array of them. A string
  /// is written as in `decode`.
  std::expected<nlohmann::json, std::string> to_json(std::span<const std::byte> bytes) const;

  const std::string& name() const { return name_; }

 private:
  enum class Type : uint8_t { text, hex, json, integer, natural, real, padded, bytes };
  struct Field {
    Type type = Type::text;
    uint32_t bytes = 0;  // 0: the rest
    std::string name;
  };

  static std::expected<Field, std::string> parse_field(std::string_view text, Part part);
  std::expected<void, std::string> encode_number(const Field& field, std::string_view text,
                                                 std::vector<std::byte>& out) const;
  static std::expected<std::vector<std::byte>, std::string> encode_bytes(const Field& field,
                                                                         std::string_view text);
  std::expected<void, std::string> encode_field(const Field& field, std::string_view text,
                                                std::vector<std::byte>& out) const;
  std::expected<std::string, std::string> decode_field(const Field& field,
                                                       std::span<const std::byte> bytes) const;
  std::expected<std::vector<std::byte>, std::string> encode_some(std::string_view text,
                                                                 bool all) const;
  /// Divides the bytes among the fields.
  std::expected<std::vector<std::span<const std::byte>>, std::string> divide(
      std::span<const std::byte> bytes) const;
  uint64_t load(std::span<const std::byte> bytes) const;
  void store(uint64_t number, uint32_t bytes, std::vector<std::byte>& out) const;

  std::string name_;
  Part part_ = Part::value;
  std::vector<Field> fields_;
};

/// Returns printable text for any bytes; see `text` above. A comma becomes \x2c if
/// `escapes_commas`.
std::string escape_text(std::span<const std::byte> bytes, bool escapes_commas = false);
/// Returns the bytes of such a text, or an error that names the wrong escape.
std::expected<std::vector<std::byte>, std::string> unescape_text(std::string_view text);

}  // namespace atolldb::shell
