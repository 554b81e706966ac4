// Builds the metric families of one scrape.
#pragma once

#include <prometheus/metric_family.h>

#include <cstdint>
#include <string>
#include <vector>

#include "shared/memory/histogram.h"

namespace atolldb {

class MetricFamilies {
 public:
  using Labels = std::vector<prometheus::ClientMetric::Label>;

  /// `labels` are added to every sample.
  explicit MetricFamilies(Labels labels) : labels_(std::move(labels)) {}

  /// Starts a family. The following samples belong to it. Names of counters end in _total.
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

  std::vector<prometheus::MetricFamily> take() { return std::move(families_); }

 private:
  MetricFamilies& family(const char* name, const char* help, prometheus::MetricType type);

  Labels labels_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace atolldb
