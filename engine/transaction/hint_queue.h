// Queue of hints: maintenance that a transaction has found, to be done between transactions. Hints
// name pages with tombstones (R45), runs of empty pages (R46), and divided pages of hash storages
// (R101). A hint may be lost: the walk of the next snapshot's installer then finds pages with
// tombstones (R70), and the next division packs the neighbours.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {

/// A hint names a border page by the slices that lead to it, not by its address, because the page
/// may be replaced meanwhile. The queue stores the hint's prefix beside it: the whole slices that
/// lead to the page's layer.
struct Hint {
  uint64_t not_before;  // epoch before which the tombstones are too young to be removed
  uint64_t page;        // VolatilePointer word, to detect duplicate hints
  uint64_t slice;       // a slice in the page's range
  uint32_t storage_id;
  uint32_t prefix_bytes;
  bool is_split = false;  // the page was divided, so its neighbours are packed
};

/// First-in, first-out queue of hints. Drops new hints when full. Allocates only at construction.
class HintQueue {
 public:
  static constexpr uint32_t kCapacity = 256;
  /// Maximum length of keys, and so of prefixes: layers of every depth can have hints.
  static constexpr uint32_t kMaxPrefixBytes = 1024;

  /// Most keys have short prefixes or none, so most memory pages of this array are never touched.
  HintQueue()
      : prefixes_(
            std::make_unique_for_overwrite<std::byte[]>(size_t{kCapacity} * kMaxPrefixBytes)) {}

  /// Returns true if a hint for this page is queued. Compares all places without a branch, because
  /// a commit calls this for each record that it has deleted.
  bool contains(uint64_t page) const {
    uint64_t found = 0;
    for (const uint64_t one : pages_) found |= static_cast<uint64_t>(one == page);
    return found != 0;
  }
  /// Adds a hint if there is room. REQUIRES: `prefix` has hint.prefix_bytes bytes.
  void push(const Hint& hint, std::span<const std::byte> prefix) {
    CHECK(prefix.size() == hint.prefix_bytes && prefix.size() <= kMaxPrefixBytes);
    DCHECK(hint.page != 0 && size_ <= kCapacity);
    if (arrivals_ < kCapacity) ++arrivals_;
    if (size_ == kCapacity) return;
    const uint32_t at = (first_ + size_++) % kCapacity;
    DCHECK(pages_[at] == 0);
    hints_[at] = hint;
    pages_[at] = hint.page;
    if (!prefix.empty()) std::memcpy(prefix_at(at), prefix.data(), prefix.size());
  }
  bool empty() const { return size_ == 0; }
  /// Returns the number of hints pushed since the last call, at most kCapacity. Also counts hints
  /// that found no room.
  uint32_t take_arrivals() { return std::exchange(arrivals_, 0); }
  bool is_due(uint64_t epoch) const { return size_ != 0 && hints_[first_].not_before <= epoch; }
  /// Removes and returns the first hint. `prefix` gets the hint's prefix, copied to `storage`.
  Hint pop(std::span<std::byte, kMaxPrefixBytes> storage, std::span<const std::byte>& prefix) {
    DCHECK(size_ != 0 && first_ < kCapacity);
    const Hint hint = hints_[first_];
    DCHECK(hint.prefix_bytes <= kMaxPrefixBytes);
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
  std::array<uint64_t, kCapacity> pages_{};  // pages of hints_; 0 (no page) in free places
  std::unique_ptr<std::byte[]> prefixes_;    // prefixes of hints_
  uint32_t first_ = 0;
  uint32_t size_ = 0;
  uint32_t arrivals_ = 0;
};

}  // namespace atolldb
