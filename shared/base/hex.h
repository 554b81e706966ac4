// Bytes as hexadecimal text, two digits for each byte.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb {

/// Returns lower-case digits.
std::string to_hex(std::span<const std::byte> bytes);
/// Returns nothing if `text` has an odd length or other characters than digits of either case.
std::optional<std::vector<std::byte>> from_hex(std::string_view text);

}  // namespace atolldb
