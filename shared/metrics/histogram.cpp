#include "shared/metrics/histogram.h"

namespace atolldb {

void HistogramSnapshot::merge(const Histogram& histogram) {
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) {
    const uint64_t values = histogram.bucket(i);
    buckets_[i] += values;
    count_ += values;
  }
  sum_ns_ += histogram.sum_ns();
  max_ns_ = std::max(max_ns_, histogram.max_ns());
}

void HistogramSnapshot::merge(const HistogramSnapshot& other) {
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ns_ += other.sum_ns_;
  max_ns_ = std::max(max_ns_, other.max_ns_);
}

uint64_t HistogramSnapshot::quantile_ns(double quantile) const {
  if (count_ == 0) return 0;
  const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(count_ - 1));
  uint64_t seen = 0;
  for (uint32_t i = 0; i + 1 < HistogramBuckets::kCount; ++i) {
    seen += buckets_[i];
    if (seen > rank) return std::min(HistogramBuckets::middle(i), max_ns_);
  }
  return max_ns_;  // the last bucket has no upper end
}

uint64_t HistogramSnapshot::count_below(uint64_t ns) const {
  uint64_t values = 0;
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) {
    if (HistogramBuckets::lower(i + 1) > ns) break;
    values += buckets_[i];
  }
  return values;
}

}  // namespace atolldb
