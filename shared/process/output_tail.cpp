#include "shared/process/output_tail.h"

#include <algorithm>

#include "shared/base/base64.h"
#include "shared/base/check.h"

namespace atolldb {
namespace {

bool is_high(char c) { return static_cast<unsigned char>(c) >= 0x80; }

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

/// Makes the text valid UTF-8. Removes the rest of a first character whose beginning was cut off,
/// and replaces all other invalid bytes.
void make_utf8(std::string& text, bool is_cut) {
  constexpr size_t kLongestRest = 3;
  const size_t first =
      std::min(static_cast<size_t>(std::ranges::find_if_not(text, is_continuation) - text.begin()),
               kLongestRest);
  if (is_cut) text.erase(0, first);
  if (!is_utf8(text)) std::ranges::replace_if(text, is_high, '?');
  CHECK(is_utf8(text));
}

}  // namespace

void OutputTail::add(std::string_view bytes) {
  if (bytes.size() > kCommandOutputBytes) {
    is_cut_ = true;
    bytes_.clear();
    bytes.remove_prefix(bytes.size() - kCommandOutputBytes);
  }
  bytes_ += bytes;
  if (bytes_.size() > 2 * kCommandOutputBytes) {
    is_cut_ = true;
    bytes_.erase(0, bytes_.size() - kCommandOutputBytes);
  }
  CHECK(bytes_.size() <= 2 * kCommandOutputBytes);
}

std::string OutputTail::text() const {
  std::string text = bytes_;
  const bool is_cut = is_cut_ || text.size() > kCommandOutputBytes;
  if (text.size() > kCommandOutputBytes) text.erase(0, text.size() - kCommandOutputBytes);
  make_utf8(text, is_cut);
  const auto is_control = [](char c) { return (c >= 0 && c < 0x20) || c == 0x7f; };
  std::ranges::replace_if(text, is_control, ' ');
  const size_t begin = std::min(text.find_first_not_of(' '), text.size());
  text.erase(0, begin);
  text.erase(text.find_last_not_of(' ') + 1);
  CHECK(text.size() <= kCommandOutputBytes);
  return is_cut && !text.empty() ? "..." + text : text;
}

}  // namespace atolldb
