// Zeroed array whose pages the kernel allocates at their first use.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shared/base/check.h"
#include "shared/base/limits.h"

namespace atolldb {

/// An array of items whose bytes are zero at first. Ends the process if there is no address space
/// for it. Items have the alignment of a page.
template <typename T>
class ZeroedArray {
 public:
  static_assert(std::is_trivially_destructible_v<T>);

  explicit ZeroedArray(uint64_t count) : bytes_(count * sizeof(T)) {
    CHECK(count != 0);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory != MAP_FAILED);
    items_ = static_cast<T*>(memory);
  }
  ZeroedArray(const ZeroedArray&) = delete;
  ZeroedArray& operator=(const ZeroedArray&) = delete;
  ~ZeroedArray() { munmap(items_, bytes_); }

  /// Makes all bytes zero again, and returns their memory to the kernel. REQUIRES: no other thread
  /// uses the array.
  void clear() { CHECK(madvise(items_, bytes_, MADV_DONTNEED) == 0); }

  /// Advises the kernel to use huge pages for items [first, first + count). It uses one where all
  /// of it lies in advised ranges and was not used before. The array itself begins at any small
  /// page. Does nothing if the range is smaller than a huge page, or does not begin at a small
  /// one.
  void prefer_huge_pages(uint64_t first, uint64_t count) {
    constexpr uint64_t kSmallPageBytes = 4096;
    DCHECK((first + count) * sizeof(T) <= bytes_);
    const auto begin = reinterpret_cast<uintptr_t>(items_ + first);
    if (begin % kSmallPageBytes != 0 || count * sizeof(T) < kHugePageBytes) return;
    madvise(items_ + first, count * sizeof(T), MADV_HUGEPAGE);  // a hint: failure is harmless
  }

  T& operator[](uint64_t index) const {
    DCHECK(index < bytes_ / sizeof(T));
    return items_[index];
  }

 private:
  T* items_ = nullptr;
  const size_t bytes_;
};

}  // namespace atolldb
