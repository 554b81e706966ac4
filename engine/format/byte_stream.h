// Encodes values as bytes and decodes them: for the coordinator's small files, and for messages
// between processes. Little-endian.
//
// A type describes its fields once, for both directions, beside the type:
//
//   template <typename Archive>
//   void fields(Archive& archive, Described<Archive, Pin>& pin) {
//     archive(pin.id, pin.name);
//   }
//
// ByteWriter and ByteReader are the archives. They find `fields` by argument-dependent lookup, so
// it must be in the namespace of its type. A type has one description in the program.
//
//   number         its bytes; so a member's type is part of the format
//   bool           one byte; a reader takes every byte but 0 for true
//   text           length in 16 bits, then the bytes
//   optional       one byte as for a bool, then the value (without one: a default value)
//   vector         count in 32 bits, then the elements
//   byte array     its bytes
//   pointer word   64 bits
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "shared/base/check.h"
#include "shared/base/pointer.h"

namespace atolldb {

static_assert(std::endian::native == std::endian::little);

/// Parameter type of `fields`: a reader changes the value, a writer does not.
template <typename Archive, typename Value>
using Described = std::conditional_t<Archive::kReads, Value, const Value>;

class ByteWriter {
 public:
  static constexpr bool kReads = false;

  template <typename... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  /// Writes an enum of one byte. REQUIRES: first <= value <= last (CHECK).
  template <typename Enum>
  void enumerator(Enum value, std::type_identity_t<Enum> first, std::type_identity_t<Enum> last) {
    static_assert(std::is_enum_v<Enum> && sizeof(Enum) == 1);
    CHECK(first <= value && value <= last);
    number(static_cast<uint8_t>(value));
  }
  /// Writes the count and calls `describe` for each element.
  template <typename Element, typename Describe>
  void list(const std::vector<Element>& all, Describe describe) {
    CHECK(all.size() < UINT32_MAX);
    number(static_cast<uint32_t>(all.size()));
    std::ranges::for_each(all, describe);
  }
  /// Writes the elements without their count. REQUIRES: `count` is their number (CHECK).
  template <typename Element>
  void elements(const std::vector<Element>& all, uint32_t count) {
    CHECK(count == all.size());
    for (const Element& element : all) put(element);
  }

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
  /// Writes the length of the text in 16 bits, then the text. REQUIRES: the length fits (CHECK).
  void text(std::string_view value) {
    CHECK(value.size() <= UINT16_MAX);
    number(static_cast<uint16_t>(value.size()));
    raw(std::as_bytes(std::span(value)));
  }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <typename Value>
  void put(const Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      number(static_cast<uint8_t>(value));
    } else if constexpr (std::is_integral_v<Value>) {
      number(value);
    } else {
      fields(*this, value);
    }
  }
  void put(const std::string& value) { text(value); }
  void put(SnapshotPointer pointer) { number(pointer.word()); }
  template <size_t kCount>
  void put(const std::array<uint8_t, kCount>& bytes) {
    raw(std::as_bytes(std::span(bytes)));
  }
  template <typename Value>
  void put(const std::optional<Value>& optional) {
    put(optional.has_value());
    put(optional.value_or(Value{}));
  }
  template <typename Element>
  void put(const std::vector<Element>& all) {
    list(all, [this](const Element& element) { put(element); });
  }

  std::vector<std::byte> bytes_;
};

/// Reads what a ByteWriter wrote. A read past the end and all later reads fail and return zeros.
class ByteReader {
 public:
  static constexpr bool kReads = true;

  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  /// Reads an enum of one byte. A value outside of [first, last] is damage: the stream fails, and
  /// the enum becomes `first`.
  template <typename Enum>
  void enumerator(Enum& value, std::type_identity_t<Enum> first, std::type_identity_t<Enum> last) {
    static_assert(std::is_enum_v<Enum> && sizeof(Enum) == 1);
    CHECK(first <= last);
    value = static_cast<Enum>(number<uint8_t>());
    if (value >= first && value <= last) return;
    value = first;
    fail();
  }
  /// Reads the count, and calls `describe` for each element after adding it. REQUIRES: `all` is
  /// empty (CHECK).
  template <typename Element, typename Describe>
  void list(std::vector<Element>& all, Describe describe) {
    append(all, number<uint32_t>(), describe);
  }
  /// Reads `count` elements. REQUIRES: `all` is empty (CHECK).
  template <typename Element>
  void elements(std::vector<Element>& all, uint32_t count) {
    append(all, count, [this](Element& element) { get(element); });
  }

  template <typename Number>
  Number number() {
    static_assert(std::is_integral_v<Number> && !std::is_same_v<Number, bool>);
    Number value = 0;
    raw(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void raw(std::span<std::byte> into) {
    if (into.size() > bytes_.size()) return fail();
    if (!into.empty()) std::memcpy(into.data(), bytes_.data(), into.size());
    bytes_ = bytes_.subspan(into.size());
  }
  std::string text() {
    std::string value(number<uint16_t>(), '\0');
    raw(std::as_writable_bytes(std::span(value)));
    return value;
  }
  /// Makes is_good() false: the bytes cannot be what a writer wrote.
  void fail() {
    is_good_ = false;
    bytes_ = {};
  }
  bool is_good() const { return is_good_; }
  /// True if all bytes were read and no read failed.
  bool is_at_end() const { return is_good_ && bytes_.empty(); }

 private:
  /// Every element has at least one byte, so the loop for a wrong count ends when the bytes end.
  template <typename Element, typename Describe>
  void append(std::vector<Element>& all, uint32_t count, Describe describe) {
    CHECK(all.empty());
    for (uint32_t i = 0; i < count && is_good_; ++i) describe(all.emplace_back());
  }
  template <typename Value>
  void get(Value& value) {
    if constexpr (std::is_same_v<Value, bool>) {
      value = number<uint8_t>() != 0;
    } else if constexpr (std::is_integral_v<Value>) {
      value = number<Value>();
    } else {
      fields(*this, value);
    }
  }
  void get(std::string& value) { value = text(); }
  void get(SnapshotPointer& pointer) { pointer = SnapshotPointer(number<uint64_t>()); }
  template <size_t kCount>
  void get(std::array<uint8_t, kCount>& bytes) {
    raw(std::as_writable_bytes(std::span(bytes)));
  }
  template <typename Value>
  void get(std::optional<Value>& optional) {
    bool has_value = false;
    Value read = {};
    get(has_value);
    get(read);
    if (has_value) optional = read;
  }
  template <typename Element>
  void get(std::vector<Element>& all) {
    list(all, [this](Element& element) { get(element); });
  }

  std::span<const std::byte> bytes_;
  bool is_good_ = true;
};

}  // namespace atolldb
