// Latencies in nanoseconds of one thread, which goes with its results to the driver: the buckets of
// shared/metrics/histogram.h (off by 1.6 % at most), but in private memory.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "shared/metrics/histogram.h"

namespace atolldb::bench {

class LatencyHistogram {
 public:
  static constexpr uint32_t kBuckets = HistogramBuckets::kCount;

  void add(uint64_t ns) {
    ++counts_[HistogramBuckets::of(ns)];
    ++count_;
    max_ = std::max(max_, ns);
  }
  void merge(const LatencyHistogram& other) {
    for (uint32_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
  }

  uint64_t count() const { return count_; }
  uint64_t max_ns() const { return max_; }
  /// Middle of the bucket in which the value of that rank is; never more than max_ns(). 0: empty.
  uint64_t quantile_ns(double quantile) const {
    if (count_ == 0) return 0;
    const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(count_ - 1));
    uint64_t seen = 0;
    for (uint32_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen > rank) return std::min(HistogramBuckets::middle(i), max_);
    }
    return max_;
  }

  /// Pairs {bucket, count} of what is not empty; `restore` takes them back.
  std::vector<std::pair<uint32_t, uint64_t>> sparse() const {
    std::vector<std::pair<uint32_t, uint64_t>> pairs;
    for (uint32_t i = 0; i < kBuckets; ++i) {
      if (counts_[i] != 0) pairs.emplace_back(i, counts_[i]);
    }
    return pairs;
  }
  void restore(const std::vector<std::pair<uint32_t, uint64_t>>& pairs, uint64_t max_ns) {
    for (const auto& [bucket, count] : pairs) {
      if (bucket >= kBuckets) continue;
      counts_[bucket] += count;
      count_ += count;
    }
    max_ = std::max(max_, max_ns);
  }

 private:
  std::array<uint64_t, kBuckets> counts_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

}  // namespace atolldb::bench
