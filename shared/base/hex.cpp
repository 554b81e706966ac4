#include "shared/base/hex.h"

#include <boost/algorithm/hex.hpp>
#include <iterator>

namespace atolldb {

std::string to_hex(std::span<const std::byte> bytes) {
  const auto* first = reinterpret_cast<const char*>(bytes.data());
  std::string text;
  text.reserve(2 * bytes.size());
  boost::algorithm::hex_lower(first, first + bytes.size(), std::back_inserter(text));
  return text;
}

std::optional<std::vector<std::byte>> from_hex(std::string_view text) {
  std::vector<std::byte> bytes(text.size() / 2);
  // The library reports wrong digits by exceptions.
  try {
    boost::algorithm::unhex(text.begin(), text.end(), reinterpret_cast<char*>(bytes.data()));
  } catch (const boost::algorithm::hex_decode_error&) {
    return std::nullopt;
  }
  return bytes;
}

}  // namespace atolldb
