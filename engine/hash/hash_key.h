// Keys of a hash storage as its Master-tree stores them: they begin with the hash of the key.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/format/tree_key.h"
#include "shared/base/check.h"

namespace atolldb {

/// Bytes of the hash, with which each stored key begins.
inline constexpr uint32_t kHashBytes = 8;

/// Returns the high half of the product of `left` and `right`, combined with the low half.
inline uint64_t fold_product(uint64_t left, uint64_t right) {
  __extension__ using Product = unsigned __int128;
  const Product product = static_cast<Product>(left) * right;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

/// Mixes all bits of a word. Each step can be undone, so different words have different results.
inline uint64_t mix_word(uint64_t word) {
  word = (word ^ word >> 32) * 0xbf58476d1ce4e5b9ull;
  word = (word ^ word >> 32) * 0x94d049bb133111ebull;
  return word ^ word >> 32;
}

/// Returns the word of which `mixed` is the result of mix_word.
inline uint64_t unmix_word(uint64_t mixed) {
  mixed =
      (mixed ^ mixed >> 32) * 0x319642b2d24d8ec3ull;  // the inverses of the factors, modulo 2^64
  mixed = (mixed ^ mixed >> 32) * 0x96de1b173f119089ull;
  const uint64_t word = mixed ^ mixed >> 32;
  return word;
}

/// Returns the hash of a key. Stored data depends on it: log records and snapshots have it in their
/// keys, so it must never change (R87). All bits are well mixed; the high ones choose the page.
inline uint64_t hash_of_key(Bytes key) {
  constexpr uint64_t kWordMultiplier = 0x9e3779b97f4a7c15ull;
  constexpr uint64_t kLastMultiplier = 0xd6e8feb86659fd93ull;
  uint64_t word = 0;
  if (key.size() == sizeof(word)) {
    std::memcpy(&word, key.data(), sizeof(word));
    return mix_word(word);
  }
  uint64_t hash = fold_product(key.size() + kLastMultiplier, kWordMultiplier);
  size_t at = 0;
  for (; at + sizeof(word) <= key.size(); at += sizeof(word)) {
    std::memcpy(&word, key.data() + at, sizeof(word));
    hash = fold_product(hash ^ word, kWordMultiplier) + word;
  }
  uint64_t rest = 0;
  if (at < key.size()) std::memcpy(&rest, key.data() + at, key.size() - at);
  return mix_word(fold_product(hash ^ rest, kLastMultiplier));
}

/// The stored form of a key.
///
///   key of 8 bytes     hash                the hash alone, because unmix_word returns the key
///   empty key          hash, 8 zero bytes  no other key has a stored form of 16 bytes
///   any other key      hash, key
///
/// A key of more than kMaxKeyBytes bytes gets a stored form that is too long. Every operation on it
/// returns key_too_long.
class HashKey {
 public:
  static constexpr uint32_t kMaxKeyBytes = kMaxTreeKeyBytes - kHashBytes;

  HashKey() = default;  // use `set` before `stored`
  explicit HashKey(Bytes key) { set(key); }

  void set(Bytes key) {
    put_slice(hash_of_key(key), bytes_.data());
    size_ = kHashBytes;
    if (key.size() == kHashBytes) return;
    if (key.empty()) {
      std::memset(bytes_.data() + kHashBytes, 0, kHashBytes);
      size_ += kHashBytes;
      return;
    }
    DCHECK(key.size() != kHashBytes && !key.empty());
    const size_t copied = std::min<size_t>(key.size(), kMaxKeyBytes + 1);
    std::memcpy(bytes_.data() + kHashBytes, key.data(), copied);
    size_ += copied;
  }
  Bytes stored() const {
    DCHECK(size_ >= kHashBytes && size_ <= bytes_.size());
    return Bytes(bytes_).first(size_);
  }

 private:
  std::array<std::byte, kMaxTreeKeyBytes + 1> bytes_;
  size_t size_ = 0;
};

/// The key of a stored form. Must not outlive the stored form.
class OriginalKey {
 public:
  /// REQUIRES: `stored` has at least kHashBytes bytes.
  explicit OriginalKey(Bytes stored) {
    CHECK(stored.size() >= kHashBytes);
    if (stored.size() == kHashBytes) {
      const uint64_t word = unmix_word(slice_of(stored));
      std::memcpy(word_.data(), &word, sizeof(word));
    } else if (stored.size() != 2 * kHashBytes) {
      rest_ = stored.subspan(kHashBytes);
    } else {
      is_empty_ = true;
    }
  }
  Bytes bytes() const {
    DCHECK(!is_empty_ || rest_.empty());
    if (is_empty_) return {};
    return rest_.empty() ? Bytes(word_) : rest_;
  }
  operator Bytes() const { return bytes(); }

 private:
  std::array<std::byte, kHashBytes> word_{};
  Bytes rest_;
  bool is_empty_ = false;
};

/// Returns whether the bytes are the stored form of some key. False in a sound storage means damage
/// (R87).
inline bool is_stored_form(Bytes stored) {
  if (stored.size() < kHashBytes) return false;
  const HashKey again{OriginalKey(stored)};
  return std::ranges::equal(again.stored(), stored);
}

}  // namespace atolldb
