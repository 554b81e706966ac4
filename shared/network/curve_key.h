// CURVE keys of network sessions: their text form and their files.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "shared/base/error.h"

namespace atolldb {

inline constexpr size_t kCurveKeyBytes = 32;
using CurveKey = std::array<std::byte, kCurveKeyBytes>;

struct CurveKeyPair {
  CurveKey public_key{};
  CurveKey secret_key{};
};

/// Returns nothing unless the text has exactly 64 hexadecimal digits.
std::optional<CurveKey> curve_key_of_hex(std::string_view text);

/// Reads both keys of a key file. Errors: config if the file does not exist, cannot be read, is
/// readable by other users, or has no keys.
Result<CurveKeyPair> read_key_file(const std::string& path);
/// Makes a key file of mode 600. Error: failed if the file exists already, or cannot be written.
Result<void> write_key_file(const std::string& path, const CurveKeyPair& keys);

}  // namespace atolldb
