// Work that a transaction noticed and that is better done between transactions, a little later:
// pages with dead records (R45), runs of empty pages (R46). Hints may be lost.
#pragma once

#include <array>
#include <cstdint>

namespace atolldb {

/// Names a border page by what leads to it, never by address: it may be replaced meanwhile.
struct Hint {
  static constexpr uint32_t kMaxPrefix = 64;

  uint64_t not_before;  // epoch: dead records are removable only when they are old enough
  uint64_t page;        // VolatilePointer word, to recognise a hint that is already there
  uint64_t slice;       // a slice in the page's range
  uint32_t storage_id;
  uint32_t prefix_bytes;  // whole slices that lead to the layer
  std::array<unsigned char, kMaxPrefix> prefix;
};

/// First in, first out; drops hints when it is full.
class HintQueue {
 public:
  static constexpr uint32_t kCapacity = 256;

  /// A commit asks for each record that it has deleted: all places are compared, without a branch.
  bool contains(uint64_t page) const {
    uint64_t found = 0;
    for (const uint64_t one : pages_) found |= static_cast<uint64_t>(one == page);
    return found != 0;
  }
  void push(const Hint& hint) {
    if (size_ == kCapacity) return;
    const uint32_t at = (first_ + size_++) % kCapacity;
    hints_[at] = hint;
    pages_[at] = hint.page;
  }
  bool empty() const { return size_ == 0; }
  bool is_due(uint64_t epoch) const { return size_ != 0 && hints_[first_].not_before <= epoch; }
  Hint pop() {
    const Hint hint = hints_[first_];
    pages_[first_] = 0;
    first_ = (first_ + 1) % kCapacity;
    --size_;
    return hint;
  }

 private:
  std::array<Hint, kCapacity> hints_{};
  std::array<uint64_t, kCapacity> pages_{};  // of hints_; 0 in free places, which no page is
  uint32_t first_ = 0;
  uint32_t size_ = 0;
};

}  // namespace atolldb
