// Memory for reads and writes that bypass the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace atolldb {

/// Zeros, aligned for direct I/O. One of kHugePageBytes or more has huge pages where the machine
/// has some: the kernel pins, describes and lets go every single page of a transfer.
class IoBuffer {
 public:
  explicit IoBuffer(uint64_t bytes);
  /// As many bytes as asked for, up to a multiple of kIoBlockBytes.
  std::span<std::byte> bytes() { return {memory_.get(), bytes_}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const;
  };
  uint64_t bytes_;
  std::unique_ptr<std::byte[], Free> memory_;
};

}  // namespace atolldb
