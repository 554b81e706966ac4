// Limits of control messages, checked before a message is parsed (R64). A parser may need a hundred
// times as many bytes as the message has.
#pragma once

#include <cstdint>
#include <string_view>

#include "shared/base/error.h"
#include "shared/message/control_operation.h"

namespace atolldb {

/// Maximum nesting depth of objects and lists.
inline constexpr uint32_t kMaxControlDepth = 32;

/// Returns the limits of a request with this op.
inline ControlLimits control_limits(std::string_view op) {
  return control_limits(control_operation(op));
}

/// Result of scanning a message without parsing it. The scan allocates no memory.
struct ControlScan {
  uint64_t values = 0;
  std::string_view op;  // raw text of the last member "op" of the outermost object
};

/// Counts the values of a message. Returns code failed, with the limit, if the message is longer
/// than kMaxControlBytes, deeper than kMaxControlDepth, or has more than kMaxControlValues. For
/// invalid JSON the result is arbitrary.
Result<ControlScan> scan_control_message(std::string_view frame);

}  // namespace atolldb
