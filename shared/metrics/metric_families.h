// Builds the metric families of one scrape, mostly from tables of metrics.
#pragma once

#include <prometheus/metric_family.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "shared/memory/histogram.h"

namespace atolldb {

/// Entry of a table of metrics: one counter or gauge of a struct T. It is a counter if its name
/// ends in _total, else a gauge.
template <typename T>
struct Metric {
  const char* name;
  const char* help;
  double (*value)(const T&);
  double unit = 1;  // converts the value to the unit in the metric's name
};

// Relaxed: for display only; each value is correct by itself.
inline double read_metric(const Counter& counter) { return static_cast<double>(counter.get()); }
template <typename Value>
double read_metric(const std::atomic<Value>& word) {
  return static_cast<double>(word.load(std::memory_order_relaxed));
}
template <typename Value>
double read_metric(const Value& plain) {
  return static_cast<double>(plain);
}

template <typename>
struct OwnerOf;
template <typename Member, typename Owner>
struct OwnerOf<Member Owner::*> {
  using Type = Owner;
};
/// Reads a member of a struct, for Metric::value: `field<&LoggerMetrics::blocks>`.
template <auto kMember>
double field(const typename OwnerOf<decltype(kMember)>::Type& owner) {
  return read_metric(owner.*kMember);
}

/// Returns upper bounds of latencies in nanoseconds, which are bucket limits: 32 us to 2 s, each
/// twice the previous one.
std::vector<uint64_t> latency_bounds_ns();

class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  /// `labels` are added to every sample.
  explicit MetricFamilies(Labels labels) : labels_(std::move(labels)) {}

  /// Starts a family. The following samples belong to it. REQUIRES: the scrape has no family of
  /// this name yet. Names are atoll_<thing>_<unit>, or process_<thing>_<unit> for what all programs
  /// export; those of counters, and no others, end in _total. A help text is a sentence.
  MetricFamilies& counter(const char* name, const char* help);
  MetricFamilies& gauge(const char* name, const char* help);
  MetricFamilies& histogram(const char* name, const char* help);
  MetricFamilies& sample(double value, const Labels& labels = {});
  MetricFamilies& sample(uint64_t value, const Labels& labels = {}) {
    return sample(static_cast<double>(value), labels);
  }

  /// Adds a sample to a histogram family, in seconds. REQUIRES: `bounds_ns` ascend and are bucket
  /// limits.
  MetricFamilies& sample(const Histogram& values, const std::vector<uint64_t>& bounds_ns,
                         const Labels& labels);
  /// Adds a sample to a histogram family, in seconds. `counts`: number of values in each bucket.
  /// Bucket i ends at `bounds_ns[i]` and includes it; the last bucket has no end. REQUIRES:
  /// `bounds_ns` ascend.
  MetricFamilies& sample(std::span<const uint64_t> counts, std::span<const uint64_t> bounds_ns,
                         uint64_t sum_ns, const Labels& labels);

  /// Adds a family with one sample for each entry of a table.
  template <typename T, size_t kCount>
  void add(const Metric<T> (&table)[kCount], const T& source) {
    for (const Metric<T>& metric : table) {
      family_of(metric.name, metric.help).sample(metric.value(source) * metric.unit);
    }
  }
  /// Adds a family for each entry of a table, with a sample for each source. `label` has the index
  /// of the source as its value.
  template <typename T, size_t kCount>
  void add(const Metric<T> (&table)[kCount], std::span<const T> sources, const char* label) {
    for (const Metric<T>& metric : table) {
      family_of(metric.name, metric.help);
      for (size_t i = 0; i < sources.size(); ++i) {
        sample(metric.value(sources[i]) * metric.unit, {{label, std::to_string(i)}});
      }
    }
  }

  /// Returns the families of the scrape. REQUIRES: each has a sample.
  std::vector<prometheus::MetricFamily> take();

 private:
  MetricFamilies& family_of(const char* name, const char* help);
  MetricFamilies& family(const char* name, const char* help, prometheus::MetricType type);

  Labels labels_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace atolldb
