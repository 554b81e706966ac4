// Allocates the rest of a node's page pool in the background. `Node::prepare` allocates only the
// begin of a large pool, so that a start does not wait for the kernel to clear all of it.
//
// Workers take pages in ascending order. The thread always keeps some allocated memory ahead of
// them, so they meet allocated pages. It allocates the rest while processors are idle, because on a
// busy machine it would take their time from the workers.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "shared/base/error.h"
#include "shared/logging/logger.h"
#include "shared/process/idle_cpus.h"

namespace atolldb {

/// Bytes of each pool that a start allocates before the cluster runs.
inline constexpr uint64_t kPoolBytesAtStart = uint64_t{64} << 20;
/// Bytes of allocated memory after the last used page. If there are fewer, the thread allocates
/// more even if no processor is idle.
inline constexpr uint64_t kPoolBytesAhead = uint64_t{128} << 20;

struct PoolMemorySettings {
  std::string segment;        // name in messages
  std::byte* base = nullptr;  // the pool, mapped until the thread has ended
  uint64_t bytes = 0;         // of the pool
  std::vector<int32_t> cpus;  // processors whose idle time is used; none: unknown
  /// Returns the bytes up to the last used page, approximately. Thread: that of the PoolMemory.
  std::function<uint64_t()> used_bytes;
  /// Receives the error if the memory is missing. Thread: that of the PoolMemory.
  std::function<void(const Error&)> on_failure;
};

class PoolMemory {
 public:
  /// Starts the thread, which allocates the bytes from kPoolBytesAtStart on.
  PoolMemory(PoolMemorySettings settings, Logger logger);
  PoolMemory(const PoolMemory&) = delete;
  PoolMemory& operator=(const PoolMemory&) = delete;
  ~PoolMemory() { stop(); }

  /// Ends the thread after the part that it allocates now. Does nothing if it has ended.
  void stop();

  /// Returns the bytes that are not allocated yet. Thread: any.
  uint64_t unallocated_bytes() const {
    return settings_.bytes - allocated_.load(std::memory_order_relaxed);  // a gauge
  }

 private:
  using Clock = std::chrono::steady_clock;

  void work();
  bool must_wait(Clock::time_point now);
  double spare_cpus(Clock::time_point now);
  /// Waits for a time. Returns true at once if the thread must end.
  bool ends_within(Clock::duration time);

  const PoolMemorySettings settings_;
  const Logger logger_;
  std::atomic<uint64_t> allocated_;
  // The next members are used only by the thread.
  IdleCpus idle_cpus_;
  Clock::time_point window_begin_{};  // begin of the time over which own_cpus_ is measured next
  std::chrono::nanoseconds cpu_before_{};  // processor time of the thread at that begin
  double own_cpus_ = 0;                    // processors that the thread used in the last window

  std::mutex mutex_;
  std::condition_variable changed_;
  bool ends_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace atolldb
