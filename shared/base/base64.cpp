#include "shared/base/base64.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "shared/base/check.h"

namespace atolldb {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
static_assert(kAlphabet.size() == 64);

constexpr std::array<int8_t, 256> kValues = [] {
  std::array<int8_t, 256> values{};
  values.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  return values;
}();

}  // namespace

std::string to_base64(std::span<const std::byte> bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const size_t count = std::min<size_t>(3, bytes.size() - at);
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (i < count ? static_cast<uint32_t>(bytes[at + i]) : 0);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += i <= count ? kAlphabet[group >> (18 - 6 * i) & 63] : '=';
    }
  }
  CHECK(text.size() == (bytes.size() + 2) / 3 * 4);
  return text;
}

std::optional<std::vector<std::byte>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  const size_t bytes_in_all = text.size() / 4 * 3 - padding;
  std::vector<std::byte> bytes;
  bytes.reserve(bytes_in_all);
  for (size_t at = 0; at < text.size(); at += 4) {
    const size_t given = at + 4 == text.size() ? 4 - padding : 4;
    uint32_t group = 0;
    for (size_t i = 0; i < 4; ++i) {
      const int8_t value =
          i < given ? kValues[static_cast<unsigned char>(text[at + i])] : int8_t{0};
      if (value < 0) return std::nullopt;
      group = group << 6 | static_cast<uint32_t>(value);
    }
    for (size_t i = 0; i + 1 < given; ++i) {
      bytes.push_back(static_cast<std::byte>(group >> (16 - 8 * i) & 0xff));
    }
  }
  CHECK(bytes.size() == bytes_in_all);
  return bytes;
}

bool is_utf8(std::string_view text) {
  try {
    [[maybe_unused]] const std::string dumped = nlohmann::json(text).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace atolldb
