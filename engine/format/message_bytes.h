// Encodes values for messages between coordinator and nodes, which run the same program version.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/format/byte_stream.h"
#include "shared/base/check.h"
#include "shared/base/error.h"

namespace atolldb {

/// Returns `magic` and the value. The magic number changes with the format, so readers of another
/// version return an error.
template <typename Value>
std::vector<std::byte> encode_message(uint32_t magic, const Value& value) {
  ByteWriter to;
  CHECK(magic != 0);
  to(magic, value);
  return {to.bytes().begin(), to.bytes().end()};
}

/// Decodes bytes from another process. `what`: the kind of value, for errors. Error: code failed if
/// the bytes differ from what encode_message writes.
template <typename Value>
Result<Value> decode_message(uint32_t magic, const char* what, std::span<const std::byte> bytes) {
  ByteReader from(bytes);
  uint32_t found = 0;
  Value value;
  CHECK(what != nullptr);
  from(found, value);
  if (found == magic && from.is_at_end() &&
      std::ranges::equal(encode_message(magic, value), bytes)) {
    return value;
  }
  return make_error(ExitCode::failed,
                    fmt::format("{}: this version did not write these {} bytes: coordinator and "
                                "nodes must have the same version: restart the cluster",
                                what, bytes.size()));
}

}  // namespace atolldb
