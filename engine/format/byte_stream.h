// Encodes numbers and texts as bytes and decodes them, for the coordinator's small files.
// Little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace atolldb {

static_assert(std::endian::native == std::endian::little);

class ByteWriter {
 public:
  template <typename Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    raw(std::as_bytes(std::span(&value, 1)));
  }
  void raw(std::span<const std::byte> bytes) {
    const size_t at = bytes_.size();
    bytes_.resize(at + bytes.size());
    if (!bytes.empty()) std::memcpy(bytes_.data() + at, bytes.data(), bytes.size());
  }
  /// Writes the length of the text in 16 bits, then the text.
  void text(std::string_view value) {
    number(static_cast<uint16_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

/// A read past the end returns zeros and makes is_good() false for good.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number value = 0;
    raw(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void raw(std::span<std::byte> into) {
    if (into.size() > bytes_.size()) {
      is_good_ = false;
      bytes_ = {};
      return;
    }
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
    bytes_ = bytes_.subspan(into.size());
  }
  std::string text() {
    std::string value(number<uint16_t>(), '\0');
    raw(std::as_writable_bytes(std::span(value)));
    return value;
  }
  bool is_good() const { return is_good_; }
  /// True if all bytes were read and no read went past the end.
  bool is_at_end() const { return is_good_ && bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
  bool is_good_ = true;
};

}  // namespace atolldb
