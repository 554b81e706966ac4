#include "shared/message/control_limits.h"

#include <string>

#include "shared/base/check.h"

namespace atolldb {
namespace {

std::unexpected<Error> too_much(const std::string& what, uint64_t limit) {
  return make_error(ExitCode::failed, "control message: " + what + " more than the limit of " +
                                          std::to_string(limit) + ": send less at a time");
}

/// Returns the position of the closing quote of the string that starts at the quote `text[at]`, or
/// the end of the text.
size_t end_of_string(std::string_view text, size_t at) {
  CHECK(at < text.size() && text[at] == '"');
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

}  // namespace

Result<ControlScan> scan_control_message(std::string_view frame) {
  if (frame.size() > kMaxControlBytes) {
    return too_much(std::to_string(frame.size()) + " bytes are", kMaxControlBytes);
  }
  ControlScan scan;
  uint32_t depth = 0;
  bool is_key = false;    // the next string at depth 1 is a member name
  std::string_view name;  // name of the latest member at depth 1
  for (size_t at = 0; at < frame.size(); ++at) {
    switch (frame[at]) {
      case '"': {
        const size_t end = end_of_string(frame, at);
        CHECK(end > at);
        const std::string_view text = frame.substr(at + 1, end - at - 1);
        if (depth == 1 && is_key) name = text;
        if (depth == 1 && !is_key && name == "op") scan.op = text;
        at = end;
        break;
      }
      case '{':
      case '[':
        if (++depth > kMaxControlDepth) return too_much("it is nested", kMaxControlDepth);
        ++scan.values;
        is_key = depth == 1 && frame[at] == '{';
        break;
      case '}':
      case ']':
        if (depth != 0) --depth;
        break;
      case ',':
        ++scan.values;
        is_key = depth == 1;
        break;
      case ':':
        if (depth == 1) is_key = false;
        break;
      default:
        break;
    }
    if (scan.values > kMaxControlValues) return too_much("it has", kMaxControlValues);
  }
  CHECK(depth <= kMaxControlDepth && scan.values <= kMaxControlValues);
  return scan;
}

}  // namespace atolldb
