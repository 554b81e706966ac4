#include "shared/metrics/metric_families.h"

#include "shared/check.h"

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

}  // namespace atolldb
