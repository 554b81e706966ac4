#include "shared/metrics/metric_families.h"

#include <algorithm>
#include <limits>

#include "shared/base/check.h"

namespace atolldb {

MetricFamilies& MetricFamilies::counter(const char* name, const char* help) {
  return family(name, help, prometheus::MetricType::Counter);
}

MetricFamilies& MetricFamilies::gauge(const char* name, const char* help) {
  return family(name, help, prometheus::MetricType::Gauge);
}

MetricFamilies& MetricFamilies::family(const char* name, const char* help,
                                       prometheus::MetricType type) {
  families_.push_back({name, help, type, {}});
  return *this;
}

MetricFamilies& MetricFamilies::sample(double value, const Labels& labels) {
  CHECK(!families_.empty());
  prometheus::MetricFamily& family = families_.back();
  prometheus::ClientMetric metric;
  metric.label = labels_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  if (family.type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
  family.metric.push_back(std::move(metric));
  return *this;
}

MetricFamilies& MetricFamilies::histogram(const char* name, const char* help) {
  return family(name, help, prometheus::MetricType::Histogram);
}

MetricFamilies& MetricFamilies::sample(const Histogram& values,
                                       const std::vector<uint64_t>& bounds_ns,
                                       const Labels& labels) {
  constexpr double kSecondsPerNs = 1e-9;
  prometheus::ClientMetric metric;
  metric.label = labels_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  // Load the total first: a concurrent writer can then only make the buckets larger than the total.
  const uint64_t count = values.count();
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(values.sum_ns()) * kSecondsPerNs;
  for (const uint64_t bound : bounds_ns) {
    metric.histogram.bucket.push_back(
        {std::min(count, values.count_below(bound)), static_cast<double>(bound) * kSecondsPerNs});
  }
  metric.histogram.bucket.push_back({count, std::numeric_limits<double>::infinity()});
  families_.back().metric.push_back(std::move(metric));
  return *this;
}

}  // namespace atolldb
