// Keys that follow other keys in the order of bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "shared/kv/kv_request.h"

namespace atolldb {

/// Returns the first key after all keys with this prefix, or an empty key if there is none.
inline std::vector<std::byte> key_after_prefix(KvBytes prefix) {
  const auto is_last = [](std::byte byte) { return byte == std::byte{255}; };
  while (!prefix.empty() && is_last(prefix.back())) prefix = prefix.first(prefix.size() - 1);
  std::vector<std::byte> key(prefix.begin(), prefix.end());
  if (!key.empty()) key.back() = static_cast<std::byte>(std::to_integer<int>(key.back()) + 1);
  return key;
}

/// Returns the first key after `key`, or an empty key if there is none. A key of kMaxKvKeyBytes is
/// followed by none that begins with it, because a longer key is not allowed.
inline std::vector<std::byte> key_after(KvBytes key) {
  if (key.size() >= kMaxKvKeyBytes) return key_after_prefix(key);
  std::vector<std::byte> next;
  next.reserve(key.size() + 1);
  next.assign(key.begin(), key.end());
  next.push_back(std::byte{0});
  return next;
}

}  // namespace atolldb
