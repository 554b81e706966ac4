// Copies of bytes that another thread may be writing: optimistic reads under a VID, and their
// writers. The reader checks the VID again afterwards, and discards a torn copy.
//
// ThreadSanitizer builds copy byte by byte with atomics, so that a missing VID check shows as a
// race. Other builds use plain copies between fences, which cost nothing on x86.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "shared/base/copy_bytes.h"
#include "shared/base/tsan.h"

namespace atolldb {

#ifdef ATOLL_TSAN
/// Reads `bytes` from memory that may be written concurrently.
inline void racy_read(void* to, const void* from, size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  auto* in = static_cast<unsigned char*>(const_cast<void*>(from));
  for (size_t i = 0; i < bytes; ++i) {
    out[i] = std::atomic_ref<unsigned char>(in[i]).load(std::memory_order_acquire);
  }
}
/// Writes `bytes` to memory that optimistic readers may be reading.
inline void racy_write(void* to, const void* from, size_t bytes) {
  auto* out = static_cast<unsigned char*>(to);
  const auto* in = static_cast<const unsigned char*>(from);
  for (size_t i = 0; i < bytes; ++i) {
    std::atomic_ref<unsigned char>(out[i]).store(in[i], std::memory_order_release);
  }
}
#else
inline void racy_read(void* to, const void* from, size_t bytes) {
  std::atomic_signal_fence(std::memory_order_acq_rel);
  copy_bytes(to, from, bytes);
  // Orders the copy before the reader's second load of the VID.
  std::atomic_thread_fence(std::memory_order_acquire);
}
inline void racy_write(void* to, const void* from, size_t bytes) {
  // Orders the writer's store that announces the write before the copy.
  std::atomic_thread_fence(std::memory_order_release);
  copy_bytes(to, from, bytes);
  std::atomic_signal_fence(std::memory_order_acq_rel);
}
#endif

}  // namespace atolldb
