#include "soc/node/pool_memory.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/segment_file.h"
#include "shared/process/start_up.h"

namespace atolldb {
namespace {

/// Bytes per request to the kernel. The thread ends within the time that one request takes.
constexpr uint64_t kStepBytes = uint64_t{32} << 20;

}  // namespace

PoolMemory::PoolMemory(std::string segment, std::byte* base, uint64_t bytes, OnFailure on_failure,
                       Logger logger)
    : logger_(std::move(logger)), allocated_(std::min(bytes, kPoolBytesAtStart)) {
  CHECK(base != nullptr && bytes != 0 && on_failure);
  if (bytes <= kPoolBytesAtStart) return;
  thread_ = std::thread(
      [this, segment = std::move(segment), base, bytes, on_failure = std::move(on_failure)] {
        name_thread("pool-memory");
        become_batch_thread();
        work(segment, base, bytes, on_failure);
      });
}

PoolMemory::~PoolMemory() {
  // Relaxed: the thread only ends earlier.
  ends_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void PoolMemory::work(const std::string& segment, std::byte* base, uint64_t bytes,
                      const OnFailure& on_failure) {
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t at = kPoolBytesAtStart; at < bytes;) {
    if (ends_.load(std::memory_order_relaxed)) return;
    const uint64_t step = std::min(kStepBytes, bytes - at);
    if (const auto done = prefault_memory(segment, base + at, step, 1); !done) {
      logger_->critical("{}", done.error().message);
      return on_failure(done.error());
    }
    at += step;
    allocated_.store(at, std::memory_order_relaxed);
  }
  logger_->info("segment {}: all of its {} MiB are allocated, after {:.3f} s in the background",
                segment, bytes >> 20,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
}

}  // namespace atolldb
