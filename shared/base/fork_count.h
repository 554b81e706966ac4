// Tells a process from its children (fork).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstdint>

#include "shared/base/check.h"

namespace atolldb {

/// Number of forks that fork_count() has counted.
inline std::atomic<uint32_t> counted_forks{0};

/// Returns the number of forks between this process and the first call. So an object that stores
/// the number finds out that it was copied into a child process, where its threads do not exist.
/// Cheap: no system call. Thread: any.
inline uint32_t fork_count() {
  static const int registered = pthread_atfork(
      nullptr, nullptr, [] { counted_forks.fetch_add(1, std::memory_order_relaxed); });
  CHECK(registered == 0);  // an error would be a lack of memory
  return counted_forks.load(std::memory_order_relaxed);
}

}  // namespace atolldb
