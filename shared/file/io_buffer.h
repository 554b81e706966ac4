// Memory for reads and writes that bypass the page cache.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "shared/base/check.h"
#include "shared/base/limits.h"
#include "shared/file/file.h"

namespace atolldb {

/// Returns whether a transfer can bypass the page cache.
inline bool is_aligned(uint64_t offset, std::span<const std::byte> bytes) {
  return (offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data())) % kIoBlockBytes == 0;
}

/// Zeroed memory, aligned for direct I/O. A buffer of kHugePageBytes or more uses huge pages if
/// available: the kernel pins each page of a transfer, so fewer pages cost less.
class IoBuffer {
 public:
  explicit IoBuffer(uint64_t bytes) : bytes_(round_up(bytes, kIoBlockBytes)) {
    const bool is_large = bytes_ >= kHugePageBytes;
    const uint64_t alignment = is_large ? kHugePageBytes : kIoBlockBytes;
    const uint64_t size = round_up(bytes_, alignment);
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, size)));
    CHECK(memory_ != nullptr);
    CHECK(bytes_ >= bytes && size >= bytes_);
    if (is_large) madvise(memory_.get(), size, MADV_HUGEPAGE);  // a hint: failure is harmless
    std::memset(memory_.get(), 0, bytes_);
  }
  /// Returns the requested bytes, rounded up to a multiple of kIoBlockBytes.
  /// REQUIRES: the buffer was not moved from.
  std::span<std::byte> bytes() {
    DCHECK(memory_ != nullptr);
    return {memory_.get(), bytes_};
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  static uint64_t round_up(uint64_t bytes, uint64_t unit) {
    return (bytes + unit - 1) / unit * unit;
  }

  uint64_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace atolldb
