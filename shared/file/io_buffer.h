// Memory for reads and writes that bypass the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "shared/base/check.h"

namespace atolldb {

/// Zeroed memory, aligned for direct I/O. A buffer of kHugePageBytes or more uses huge pages if
/// available, because the kernel pins, describes and unpins every page of a transfer.
class IoBuffer {
 public:
  explicit IoBuffer(uint64_t bytes);
  /// Returns the requested bytes, rounded up to a multiple of kIoBlockBytes.
  /// REQUIRES: the buffer was not moved from.
  std::span<std::byte> bytes() {
    DCHECK(memory_ != nullptr);
    return {memory_.get(), bytes_};
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  uint64_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace atolldb
