// Counter and histogram of latencies of one thread, in shared or private memory. Both can be summed
// over threads.
//
// The histogram has log-linear buckets in nanoseconds: exact below 32, then 32 of equal width for
// each factor of two. A bucket is at most 1/32 of its values wide, so its middle is off by at
// most 1.6 %.
//
//   value   0 .. 31 | 32 .. 63 | 64 .. 127 | ... | 2^36 .. 2^37-1 (137 s)
//   bucket  0 .. 31 | 32 .. 63 | 64 ..  95 | ... | 1024 .. 1055
//
// Longer latencies count in the last bucket. The maximum stays exact.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/base/check.h"

namespace atolldb {

/// A counter with one writer, which needs no read-modify-write. May live in a segment.
class Counter {
 public:
  void add(uint64_t amount = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  uint64_t get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

struct HistogramBuckets {
  static constexpr uint32_t kSubBits = 5;
  static constexpr uint32_t kSub = 1u << kSubBits;
  /// Values have at most 37 bits.
  static constexpr uint32_t kValueBits = 37;
  static constexpr uint32_t kCount = (kValueBits - kSubBits) * kSub + kSub;
  static constexpr uint64_t kMaxValue = (uint64_t{1} << kValueBits) - 1;

  static constexpr uint32_t of(uint64_t value) {
    value = std::min(value, kMaxValue);
    if (value < kSub) return static_cast<uint32_t>(value);
    const auto shift = static_cast<uint32_t>(std::bit_width(value)) - 1 - kSubBits;
    return (shift + 1) * kSub + static_cast<uint32_t>((value >> shift) & (kSub - 1));
  }
  /// Returns the smallest value of a bucket. For kCount: one more than the largest value of all
  /// buckets.
  static constexpr uint64_t lower(uint32_t bucket) {
    DCHECK(bucket <= kCount);
    if (bucket < kSub) return bucket;
    return (uint64_t{kSub} + bucket % kSub) << (bucket / kSub - 1);
  }
  static constexpr uint64_t middle(uint32_t bucket) {
    return lower(bucket) + (lower(bucket + 1) - lower(bucket)) / 2;
  }
};
static_assert(HistogramBuckets::of(HistogramBuckets::kMaxValue) == HistogramBuckets::kCount - 1);
static_assert(HistogramBuckets::lower(HistogramBuckets::kCount) == HistogramBuckets::kMaxValue + 1);

/// One thread adds, any thread reads. May live in a segment; zeroed memory is an empty histogram.
/// All accesses are relaxed, because the words are statistics and publish no other data. A
/// concurrent reader may see a value in its bucket before it is in sum and maximum.
class Histogram {
 public:
  Histogram() = default;
  Histogram(const Histogram& other) { merge(other); }
  Histogram& operator=(const Histogram& other);

  /// Adds a value `times` times. Takes no lock and needs no read-modify-write: plain loads and
  /// stores.
  void add(uint64_t ns, uint64_t times = 1) {
    const uint32_t bucket = HistogramBuckets::of(ns);
    DCHECK(bucket < HistogramBuckets::kCount && times != 0);
    bump(buckets_[bucket], times);
    bump(sum_ns_, ns * times);
    raise_max(ns);
  }
  /// Thread: the writer. `other` may have another writer.
  void merge(const Histogram& other);

  /// Returns the sum of the buckets, so that it always agrees with the quantiles.
  uint64_t count() const;
  uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }
  uint64_t max_ns() const { return max_ns_.load(std::memory_order_relaxed); }
  /// Returns the middle of the bucket that contains the quantile, but not more than the maximum.
  /// Returns 0 if the histogram is empty. REQUIRES: 0 <= quantile <= 1.
  uint64_t quantile_ns(double quantile) const;
  /// Returns the number of values in buckets that end at or below `ns`. The number is exact if a
  /// bucket begins at `ns`.
  uint64_t count_below(uint64_t ns) const;

  /// Returns a pair {bucket, count} for each bucket that is not empty. `restore` adds such pairs to
  /// a histogram. It does not restore sum_ns.
  std::vector<std::pair<uint32_t, uint64_t>> sparse() const;
  void restore(const std::vector<std::pair<uint32_t, uint64_t>>& pairs, uint64_t max_ns);

 private:
  uint64_t bucket(uint32_t index) const { return buckets_[index].load(std::memory_order_relaxed); }
  static void bump(std::atomic<uint64_t>& word, uint64_t amount) {
    word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void raise_max(uint64_t ns) {
    if (ns > max_ns()) max_ns_.store(ns, std::memory_order_relaxed);
  }

  std::array<std::atomic<uint64_t>, HistogramBuckets::kCount> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
  std::atomic<uint64_t> max_ns_{0};
};
static_assert(sizeof(Histogram) == (HistogramBuckets::kCount + 2) * 8);

}  // namespace atolldb
