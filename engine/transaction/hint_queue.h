// Work that a transaction noticed and that is better done between transactions, a little later:
// pages with dead records (R45), runs of empty pages (R46). Hints may be lost.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "shared/check.h"

namespace atolldb {

/// Names a border page by what leads to it, never by address: it may be replaced meanwhile. Its
/// prefix, the whole slices that lead to its layer, lies beside it.
struct Hint {
  uint64_t not_before;  // epoch: dead records are removable only when they are old enough
  uint64_t page;        // VolatilePointer word, to recognise a hint that is already there
  uint64_t slice;       // a slice in the page's range
  uint32_t storage_id;
  uint32_t prefix_bytes;
};

/// First in, first out; drops hints when it is full. Allocates nothing after construction.
class HintQueue {
 public:
  static constexpr uint32_t kCapacity = 256;
  /// As long as keys may be: layers of every depth have hints.
  static constexpr uint32_t kMaxPrefixBytes = 1024;

  /// Most keys have short prefixes or none: the pages of this array stay untouched until then.
  HintQueue()
      : prefixes_(
            std::make_unique_for_overwrite<std::byte[]>(size_t{kCapacity} * kMaxPrefixBytes)) {}

  /// A commit asks for each record that it has deleted: all places are compared, without a branch.
  bool contains(uint64_t page) const {
    uint64_t found = 0;
    for (const uint64_t one : pages_) found |= static_cast<uint64_t>(one == page);
    return found != 0;
  }
  /// REQUIRES: `prefix` has hint.prefix_bytes bytes.
  void push(const Hint& hint, std::span<const std::byte> prefix) {
    CHECK(prefix.size() == hint.prefix_bytes && prefix.size() <= kMaxPrefixBytes);
    if (size_ == kCapacity) return;
    const uint32_t at = (first_ + size_++) % kCapacity;
    hints_[at] = hint;
    pages_[at] = hint.page;
    if (!prefix.empty()) std::memcpy(prefix_at(at), prefix.data(), prefix.size());
  }
  bool empty() const { return size_ == 0; }
  bool is_due(uint64_t epoch) const { return size_ != 0 && hints_[first_].not_before <= epoch; }
  /// `prefix`: gets the hint's prefix, in `storage`.
  Hint pop(std::span<std::byte, kMaxPrefixBytes> storage, std::span<const std::byte>& prefix) {
    const Hint hint = hints_[first_];
    if (hint.prefix_bytes != 0) std::memcpy(storage.data(), prefix_at(first_), hint.prefix_bytes);
    prefix = storage.first(hint.prefix_bytes);
    pages_[first_] = 0;
    first_ = (first_ + 1) % kCapacity;
    --size_;
    return hint;
  }

 private:
  std::byte* prefix_at(uint32_t at) const { return prefixes_.get() + size_t{at} * kMaxPrefixBytes; }

  std::array<Hint, kCapacity> hints_{};
  std::array<uint64_t, kCapacity> pages_{};  // of hints_; 0 in free places, which no page is
  std::unique_ptr<std::byte[]> prefixes_;    // of hints_
  uint32_t first_ = 0;
  uint32_t size_ = 0;
};

}  // namespace atolldb
