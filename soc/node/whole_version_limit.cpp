#include "soc/node/whole_version_limit.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <system_error>

#include "engine/mastertree/mastertree.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

uint32_t whole_version_limit(const char* text) {
  if (text == nullptr) return kWholeVersionBytes;
  const std::string_view digits(text);
  uint32_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  return is_number ? std::min(bytes, MasterTree::kMaxPayloadBytes) : kWholeVersionBytes;
}

}  // namespace atolldb
