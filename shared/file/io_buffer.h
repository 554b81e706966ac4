// Memory for reads and writes that bypass the page cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shared/file/file.h"

namespace atolldb {

/// Zeros, aligned for direct I/O.
class IoBuffer {
 public:
  explicit IoBuffer(uint64_t bytes) : blocks_((bytes + kIoBlockBytes - 1) / kIoBlockBytes) {}
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(blocks_)); }

 private:
  struct alignas(kIoBlockBytes) Block {
    std::byte bytes[kIoBlockBytes] = {};
  };
  std::vector<Block> blocks_;
};

}  // namespace atolldb
