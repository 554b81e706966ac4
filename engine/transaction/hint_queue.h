// Work that a transaction noticed and that is better done between transactions: pages with many
// dead records (R45), runs of empty pages (R46), splits to adopt. Hints may be lost.
#pragma once

#include <array>
#include <cstdint>

namespace atolldb {

/// Names a page by what leads to it: never by address, since it may be replaced meanwhile.
struct Hint {
  static constexpr uint32_t kMaxPrefix = 64;

  uint32_t storage_id;
  uint32_t prefix_bytes;  // whole slices that lead to the layer
  uint64_t slice;         // a slice in the page's range
  std::array<unsigned char, kMaxPrefix> prefix;
};

class HintQueue {
 public:
  static constexpr uint32_t kCapacity = 64;

  /// Drops the hint when the queue is full.
  void push(const Hint& hint) {
    if (size_ < kCapacity) hints_[size_++] = hint;
  }
  bool empty() const { return size_ == 0; }
  /// Newest first.
  Hint pop() { return hints_[--size_]; }

 private:
  std::array<Hint, kCapacity> hints_{};
  uint32_t size_ = 0;
};

}  // namespace atolldb
