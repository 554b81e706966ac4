#include "shared/message/control_limits.h"

#include <algorithm>
#include <array>
#include <string>

namespace atolldb {
namespace {

/// Requests of the coordinator to nodes that list roots and files of all storages.
constexpr std::array<std::string_view, 5> kLargeRequests = {
    "snapshot.align", "snapshot.install", "snapshot.open", "snapshot.publish", "snapshot.withdraw"};

std::unexpected<Error> too_much(const std::string& what, uint64_t limit) {
  return make_error(ExitCode::failed, "control message: " + what + " more than the limit of " +
                                          std::to_string(limit) + ": send less at a time");
}

/// Returns the position of the closing quote of the string that starts at the quote `text[at]`, or
/// the end of the text.
size_t end_of_string(std::string_view text, size_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return at;
}

}  // namespace

ControlLimits control_limits(std::string_view op) {
  const bool is_large = std::ranges::find(kLargeRequests, op) != kLargeRequests.end();
  if (op.starts_with("glean.") || is_large) return {};
  if (op == "procedure.call" || op == "job.start") return {kMaxCallBytes, kMaxSmallRequestValues};
  return {kMaxSmallRequestBytes, kMaxSmallRequestValues};
}

Result<ControlScan> scan_control_message(std::string_view frame) {
  if (frame.size() > kMaxControlBytes) {
    return too_much(std::to_string(frame.size()) + " bytes are", kMaxControlBytes);
  }
  ControlScan scan;
  uint32_t depth = 0;
  bool is_key = false;    // the next string at depth 1 is a member name
  std::string_view name;  // of the latest member at depth 1
  for (size_t at = 0; at < frame.size(); ++at) {
    switch (frame[at]) {
      case '"': {
        const size_t end = end_of_string(frame, at);
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
  return scan;
}

}  // namespace atolldb
