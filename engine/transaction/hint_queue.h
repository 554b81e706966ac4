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
  static constexpr uint32_t kCapacity = 1024;

  /// False for some that are there: then there are two of them, and the second one finds nothing
  /// to do.
  bool contains(uint64_t page) const { return latest_[place_of(page)] == page; }
  void push(const Hint& hint) {
    if (size_ == kCapacity) return;
    hints_[(first_ + size_++) % kCapacity] = hint;
    latest_[place_of(hint.page)] = hint.page;
  }
  bool empty() const { return size_ == 0; }
  bool is_due(uint64_t epoch) const { return size_ != 0 && hints_[first_].not_before <= epoch; }
  Hint pop() {
    const Hint hint = hints_[first_];
    first_ = (first_ + 1) % kCapacity;
    --size_;
    uint64_t& latest = latest_[place_of(hint.page)];
    if (latest == hint.page) latest = 0;
    return hint;
  }

 private:
  /// A commit asks for each record that it has deleted, so it must not look through all hints.
  static uint32_t place_of(uint64_t page) {
    return static_cast<uint32_t>(page * 0x9e3779b97f4a7c15u >> 54);
  }
  static_assert(kCapacity == 1024);  // 10 bits

  std::array<Hint, kCapacity> hints_{};
  std::array<uint64_t, kCapacity> latest_{};  // page of the latest hint of each place; 0: none
  uint32_t first_ = 0;
  uint32_t size_ = 0;
};

}  // namespace atolldb
