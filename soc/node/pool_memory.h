// Allocates the rest of a node's page pool in the background. `Node::prepare` allocates only the
// begin of a large pool, so that a start does not wait for the kernel to clear all of it. Workers
// take pages in ascending order, and the kernel clears several times more pages per second than a
// worker uses. So workers meet allocated pages.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "shared/base/error.h"
#include "shared/logging/logger.h"

namespace atolldb {

/// Bytes of each pool that a start allocates before the cluster runs.
inline constexpr uint64_t kPoolBytesAtStart = uint64_t{64} << 20;

class PoolMemory {
 public:
  /// Receives the error if the memory is missing. Thread: that of this object.
  using OnFailure = std::function<void(const Error&)>;

  /// Starts the thread, which allocates the bytes from kPoolBytesAtStart on. `base`: the pool of
  /// `bytes` bytes, which is mapped until the destructor returns.
  PoolMemory(std::string segment, std::byte* base, uint64_t bytes, OnFailure on_failure,
             Logger logger);
  PoolMemory(const PoolMemory&) = delete;
  PoolMemory& operator=(const PoolMemory&) = delete;
  /// Ends the thread after the part that it allocates now.
  ~PoolMemory();

  /// Returns the bytes that are allocated. Thread: any.
  uint64_t allocated_bytes() const {
    return allocated_.load(std::memory_order_relaxed);  // for display
  }

 private:
  void work(const std::string& segment, std::byte* base, uint64_t bytes,
            const OnFailure& on_failure);

  const Logger logger_;
  std::atomic<uint64_t> allocated_;
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

}  // namespace atolldb
