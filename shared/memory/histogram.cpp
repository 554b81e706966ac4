#include "shared/memory/histogram.h"

namespace atolldb {

Histogram& Histogram::operator=(const Histogram& other) {
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) {
    buckets_[i].store(other.bucket(i), std::memory_order_relaxed);
  }
  sum_ns_.store(other.sum_ns(), std::memory_order_relaxed);
  max_ns_.store(other.max_ns(), std::memory_order_relaxed);
  return *this;
}

void Histogram::merge(const Histogram& other) {
  CHECK(this != &other);
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) bump(buckets_[i], other.bucket(i));
  bump(sum_ns_, other.sum_ns());
  raise_max(other.max_ns());
}

uint64_t Histogram::count() const {
  uint64_t values = 0;
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) values += bucket(i);
  return values;
}

uint64_t Histogram::quantile_ns(double quantile) const {
  CHECK(quantile >= 0 && quantile <= 1);
  const uint64_t values = count();
  if (values == 0) return 0;
  const auto rank = static_cast<uint64_t>(quantile * static_cast<double>(values - 1));
  uint64_t seen = 0;
  for (uint32_t i = 0; i + 1 < HistogramBuckets::kCount; ++i) {
    seen += bucket(i);
    if (seen > rank) return std::min(HistogramBuckets::middle(i), max_ns());
  }
  return max_ns();  // the last bucket has no upper end
}

uint64_t Histogram::count_below(uint64_t ns) const {
  uint64_t values = 0;
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) {
    if (HistogramBuckets::lower(i + 1) > ns) break;
    values += bucket(i);
  }
  return values;
}

std::vector<std::pair<uint32_t, uint64_t>> Histogram::sparse() const {
  std::vector<std::pair<uint32_t, uint64_t>> pairs;
  for (uint32_t i = 0; i < HistogramBuckets::kCount; ++i) {
    if (const uint64_t values = bucket(i); values != 0) pairs.emplace_back(i, values);
  }
  return pairs;
}

void Histogram::restore(const std::vector<std::pair<uint32_t, uint64_t>>& pairs, uint64_t max_ns) {
  for (const auto& [index, values] : pairs) {
    if (index < HistogramBuckets::kCount) bump(buckets_[index], values);
  }
  raise_max(max_ns);
}

}  // namespace atolldb
