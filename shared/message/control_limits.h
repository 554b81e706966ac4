// Limits of control messages, checked before a message is parsed (R64). A JSON parser may need a
// hundred times as many bytes of memory as the message has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "shared/base/error.h"

namespace atolldb {

/// Maximum length of a request or answer, in bytes, including its binary part.
inline constexpr size_t kMaxControlBytes = size_t{16} << 20;
/// Limit for requests with the input of a procedure or job: at most 1 MiB, perhaps in base64.
inline constexpr size_t kMaxCallBytes = size_t{2} << 20;
/// Limit for all other requests, except the coordinator's requests to nodes about snapshots and
/// checkpoints.
inline constexpr size_t kMaxSmallRequestBytes = size_t{64} << 10;
/// Maximum number of parts of a message: JSON, and its binary member.
inline constexpr size_t kMaxControlParts = 2;
/// Maximum number of values in a message: members, list elements, objects and lists.
inline constexpr uint64_t kMaxControlValues = 1'000'000;
inline constexpr uint64_t kMaxSmallRequestValues = 1'000;
/// Maximum nesting depth of objects and lists.
inline constexpr uint32_t kMaxControlDepth = 32;

static_assert(kMaxSmallRequestBytes < kMaxCallBytes && kMaxCallBytes < kMaxControlBytes);
static_assert(kMaxSmallRequestValues < kMaxControlValues);

struct ControlLimits {
  size_t bytes = kMaxControlBytes;
  uint64_t values = kMaxControlValues;
};

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
