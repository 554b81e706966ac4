// A model of the caches of many workers: each worker has an infinite cache, and the caches are kept
// coherent by the protocol MESI: a write is a hit if no other cache has the line.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/zeroed_array.h"

namespace atolldb::bench {

/// What an access to a cache line costs.
enum class Touch : uint8_t {
  hit,
  /// The first access of this worker to the line, which is dirty in no other cache.
  first,
  /// The first access of this worker to the line, which is dirty in the cache of another worker.
  /// That cache must hand it over, as for a miss.
  first_of_dirty,
  /// Another worker has written the line since the last access of this worker.
  miss,
  /// A write to a line of which other workers have valid copies, too. They lose their copies.
  upgrade,
};

/// Invariants:
//  - A worker has a valid copy of a line from its access to it until another worker writes it.
//  - After a write, only the writer has a valid copy.
//  - A line is dirty from a write until another worker reads it. A dirty line has one valid copy.
// Thread: one at a time.
class LineModel {
 public:
  /// Lines are 0..lines-1, and workers are 0..workers-1. No worker has touched any line.
  LineModel(uint32_t workers, uint64_t lines)
      : workers_(workers),
        lines_(lines),
        words_((workers + kWordBits - 1) / kWordBits),
        bits_(lines * 2 * words_),
        is_dirty_(lines) {
    CHECK(workers != 0);
  }

  Touch read(uint32_t worker, uint64_t line) {
    DCHECK(worker < workers_ && line < lines_);
    uint64_t& valid = copies_of(line)[worker / kWordBits];
    const uint64_t own = own_bit(worker);
    if ((valid & own) != 0) [[likely]]
      return Touch::hit;
    valid |= own;
    DCHECK(is_dirty_[line] == 0 || copy_count(line) == 2);
    const bool was_dirty = std::exchange(is_dirty_[line], uint8_t{0}) != 0;
    return take_first(worker, line, was_dirty);
  }

  Touch write(uint32_t worker, uint64_t line) {
    DCHECK(worker < workers_ && line < lines_);
    uint64_t* const copies = copies_of(line);
    const bool is_shared = copy_count(line) > (has_copy(worker, line) ? 1u : 0u);
    const bool had_copy = has_copy(worker, line);
    for (uint32_t word = 0; word < words_; ++word) copies[word] = 0;
    copies[worker / kWordBits] = own_bit(worker);
    const bool was_dirty = std::exchange(is_dirty_[line], uint8_t{1}) != 0;
    if (had_copy) return is_shared ? Touch::upgrade : Touch::hit;
    return take_first(worker, line, was_dirty);
  }

  bool has_copy(uint32_t worker, uint64_t line) const {
    return (copies_of(line)[worker / kWordBits] & own_bit(worker)) != 0;
  }
  /// Returns how many workers have a valid copy of the line.
  uint32_t copy_count(uint64_t line) const {
    uint32_t count = 0;
    for (uint32_t word = 0; word < words_; ++word) {
      count += static_cast<uint32_t>(std::popcount(copies_of(line)[word]));
    }
    return count;
  }

 private:
  static constexpr uint32_t kWordBits = 64;

  static uint64_t own_bit(uint32_t worker) { return uint64_t{1} << (worker % kWordBits); }
  uint64_t* copies_of(uint64_t line) const { return &bits_[line * 2 * words_]; }
  /// Records an access of a worker without a valid copy. `was_dirty`: another worker had the line
  /// dirty.
  Touch take_first(uint32_t worker, uint64_t line, bool was_dirty) {
    uint64_t& touched = copies_of(line)[words_ + worker / kWordBits];
    const bool is_first = (touched & own_bit(worker)) == 0;
    touched |= own_bit(worker);
    if (!is_first) return Touch::miss;
    return was_dirty ? Touch::first_of_dirty : Touch::first;
  }

  uint32_t workers_;
  uint64_t lines_;
  uint32_t words_;  // of one set of workers
  // For each line, the set of workers that have a valid copy, then the set of those that have
  // touched it.
  ZeroedArray<uint64_t> bits_;
  ZeroedArray<uint8_t> is_dirty_;  // of each line
};

}  // namespace atolldb::bench
