// Bounds of control messages, checked before a message is parsed (R64): what a parser builds from a
// few bytes may take a hundred times as many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shared/error.h"

namespace atolldb {

/// Longest request or answer, in bytes.
inline constexpr size_t kMaxControlBytes = size_t{16} << 20;
/// Of requests that carry the input of a procedure or job: 1 MiB in base64, and more.
inline constexpr size_t kMaxCallBytes = size_t{2} << 20;
/// Of all other requests but those of the gleaner and of snapshots between processes.
inline constexpr size_t kMaxSmallRequestBytes = size_t{64} << 10;
/// How deep objects and lists may lie in each other.
inline constexpr uint32_t kMaxControlDepth = 32;
/// Values of a message: members, elements of lists, objects and lists themselves.
inline constexpr uint64_t kMaxControlValues = 1'000'000;
inline constexpr uint64_t kMaxSmallRequestValues = 1'000;

struct ControlLimits {
  size_t bytes = kMaxControlBytes;
  uint64_t values = kMaxControlValues;
};

/// Of a request with this op.
ControlLimits control_limits(std::string_view op);

/// What a look at a message finds out without parsing it. It takes no memory.
struct ControlScan {
  uint64_t values = 0;
  std::string_view op;  // the text of the last member "op" of the outermost object, as it stands
};

/// Code failed names the limit: the message is longer than kMaxControlBytes, deeper than
/// kMaxControlDepth or has more than kMaxControlValues. Of garbage it may say anything.
Result<ControlScan> scan_control_message(std::string_view frame);

}  // namespace atolldb
