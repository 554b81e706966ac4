// Bytes in JSON: text as it is, everything else in base64 (RFC 4648, with padding).
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb {

std::string to_base64(std::span<const std::byte> bytes);
/// Nothing when `text` is not base64.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace atolldb
