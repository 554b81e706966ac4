// Encodes bytes for JSON in base64 (RFC 4648, with padding), and checks text for UTF-8.
//
// No linked library has a public function for this: nlohmann/json has binary values in CBOR but
// not in JSON text, and Boost has iterators that neither add nor check padding.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atolldb {

std::string to_base64(std::span<const std::byte> bytes);
/// Returns nothing if `text` is not valid base64.
std::optional<std::vector<std::byte>> from_base64(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace atolldb
