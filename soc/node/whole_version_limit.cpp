#include "soc/node/whole_version_limit.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>
#include <system_error>

#include "engine/mastertree/mastertree.h"
#include "engine/transaction/transaction.h"

namespace atolldb {

Result<uint32_t> whole_version_limit(const char* text) {
  if (text == nullptr) return kWholeVersionBytes;
  const std::string_view digits(text);
  uint32_t bytes = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bytes);
  const bool is_number = error == std::errc() && end == digits.data() + digits.size();
  if (is_number && bytes <= MasterTree::kMaxPayloadBytes) return bytes;
  return make_error(ExitCode::usage,
                    fmt::format("{}=\"{}\": is no number of bytes from 0 to {}: unset it",
                                kWholeVersionVariable, text, MasterTree::kMaxPayloadBytes));
}

}  // namespace atolldb
