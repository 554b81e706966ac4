// Parsing of names of files from their front.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

#include "shared/base/check.h"

namespace atolldb {

/// Removes `expected` from the front of the text. Returns false, and changes nothing, if the text
/// does not begin with it.
inline bool take_text(std::string_view& text, std::string_view expected) {
  DCHECK(!expected.empty());
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

/// Removes a decimal number from the front of the text. Returns false if there is none, or if the
/// type cannot hold it. Accepts leading zeros: callers compare the name with the one that they
/// would write.
template <typename Number>
bool take_number(std::string_view& text, Number& number) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc{}) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace atolldb
