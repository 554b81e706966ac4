// Latencies of one thread in shared memory, and their sum over threads in the reader's own.
//
// Log-linear buckets in nanoseconds: exact below 32, then 32 of equal width for each factor of two.
// So a bucket is at most 1/32 of its values wide, and its middle is off by 1.6 % at most.
//
//   value   0 .. 31 | 32 .. 63 | 64 .. 127 | ... | 2^36 .. 2^37-1 (137 s)
//   bucket  0 .. 31 | 32 .. 63 | 64 ..  95 | ... | 1024 .. 1055
//
// Longer latencies count in the last bucket; the maximum stays exact.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

namespace atolldb {

struct HistogramBuckets {
  static constexpr uint32_t kSubBits = 5;
  static constexpr uint32_t kSub = 1u << kSubBits;
  /// Values have 37 bits at most.
  static constexpr uint32_t kValueBits = 37;
  static constexpr uint32_t kCount = (kValueBits - kSubBits) * kSub + kSub;
  static constexpr uint64_t kMaxValue = (uint64_t{1} << kValueBits) - 1;

  static constexpr uint32_t of(uint64_t value) {
    value = std::min(value, kMaxValue);
    if (value < kSub) return static_cast<uint32_t>(value);
    const auto shift = static_cast<uint32_t>(std::bit_width(value)) - 1 - kSubBits;
    return (shift + 1) * kSub + static_cast<uint32_t>((value >> shift) & (kSub - 1));
  }
  /// Smallest value of a bucket; of kCount: one beyond the largest value of all.
  static constexpr uint64_t lower(uint32_t bucket) {
    if (bucket < kSub) return bucket;
    return (uint64_t{kSub} + bucket % kSub) << (bucket / kSub - 1);
  }
  static constexpr uint64_t middle(uint32_t bucket) {
    return lower(bucket) + (lower(bucket + 1) - lower(bucket)) / 2;
  }
};
static_assert(HistogramBuckets::of(HistogramBuckets::kMaxValue) == HistogramBuckets::kCount - 1);
static_assert(HistogramBuckets::lower(HistogramBuckets::kCount) == HistogramBuckets::kMaxValue + 1);

/// Lives in a segment, zeroed memory is an empty one. One thread adds, anybody reads.
class Histogram {
 public:
  /// No lock and no read-modify-write: four plain loads and stores.
  void add(uint64_t ns) {
    bump(buckets_[HistogramBuckets::of(ns)], 1);
    bump(sum_ns_, ns);
    if (ns > max_ns_.load(std::memory_order_relaxed)) {
      max_ns_.store(ns, std::memory_order_relaxed);
    }
  }

  uint64_t bucket(uint32_t index) const { return buckets_[index].load(std::memory_order_relaxed); }
  uint64_t sum_ns() const { return sum_ns_.load(std::memory_order_relaxed); }
  uint64_t max_ns() const { return max_ns_.load(std::memory_order_relaxed); }

 private:
  static void bump(std::atomic<uint64_t>& word, uint64_t amount) {
    word.store(word.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

  // Relaxed throughout: the words are statistics, nothing else is published by them. A reader may
  // see a value in its bucket and not yet in the sum.
  std::array<std::atomic<uint64_t>, HistogramBuckets::kCount> buckets_{};
  std::atomic<uint64_t> sum_ns_{0};
  std::atomic<uint64_t> max_ns_{0};
};
static_assert(sizeof(Histogram) == (HistogramBuckets::kCount + 2) * 8);

/// A reader's sum of histograms. Its count is that of its buckets, so they agree in any case.
class HistogramSnapshot {
 public:
  void merge(const Histogram& histogram);
  void merge(const HistogramSnapshot& other);

  uint64_t count() const { return count_; }
  uint64_t sum_ns() const { return sum_ns_; }
  uint64_t max_ns() const { return max_ns_; }
  /// Middle of the bucket that holds the value of this rank, never above the maximum; 0 when empty.
  /// REQUIRES: 0 <= quantile <= 1.
  uint64_t quantile_ns(double quantile) const;
  /// Values of the buckets that end at or below `ns`: exact when a bucket begins at `ns`.
  uint64_t count_below(uint64_t ns) const;

 private:
  std::array<uint64_t, HistogramBuckets::kCount> buckets_{};
  uint64_t count_ = 0;
  uint64_t sum_ns_ = 0;
  uint64_t max_ns_ = 0;
};

}  // namespace atolldb
