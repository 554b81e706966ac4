// A transaction of TPC-C as a request of a client: the format, which client and node share. Both
// are programs of one build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "bench/tpcc/inputs.h"
#include "bench/tpcc/scale.h"

namespace atolldb::tpcc {

/// Name of the procedure. Its answer has the output of the transaction as it is in memory.
inline constexpr const char* kCallProcedure = "tpcc.call";

/// First bytes of a request. The input of the transaction follows, as it is in memory.
struct CallHead {
  TransactionType type;
  Scale scale;
};
static_assert(std::is_trivially_copyable_v<CallHead>);

/// Replaces `bytes` by a request.
template <typename Input>
void write_call(const CallHead& head, const Input& input, std::vector<std::byte>& bytes) {
  static_assert(std::is_trivially_copyable_v<Input>);
  bytes.resize(sizeof(head) + sizeof(input));
  std::memcpy(bytes.data(), &head, sizeof(head));
  std::memcpy(bytes.data() + sizeof(head), &input, sizeof(input));
}

/// Reads the first bytes of a request. Returns false if it is too short.
inline bool read_call_head(std::span<const std::byte> bytes, CallHead& head) {
  if (bytes.size() < sizeof(head)) return false;
  std::memcpy(&head, bytes.data(), sizeof(head));
  return true;
}

/// Reads what write_call has written. Returns false if the size differs.
template <typename Input>
bool read_call_input(std::span<const std::byte> bytes, Input& input) {
  if (bytes.size() != sizeof(CallHead) + sizeof(Input)) return false;
  std::memcpy(&input, bytes.data() + sizeof(CallHead), sizeof(Input));
  return true;
}

}  // namespace atolldb::tpcc
