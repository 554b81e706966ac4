#include "shared/metrics/metric_families.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>

#include "shared/base/check.h"

namespace atolldb {
namespace {

bool is_counter_name(std::string_view name) { return name.ends_with("_total"); }

/// Returns whether the name consists of atoll_ or process_ and lower-case words, and the help text
/// is a sentence.
bool is_valid(std::string_view name, std::string_view help) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const bool has_prefix = name.starts_with("atoll_") || name.starts_with("process_");
  return has_prefix && name.find_first_not_of(kLetters) == std::string_view::npos &&
         help.ends_with('.');
}

}  // namespace

std::vector<uint64_t> latency_bounds_ns() {
  constexpr uint64_t kFirst = uint64_t{1} << 15;
  constexpr uint64_t kLast = uint64_t{1} << 31;
  std::vector<uint64_t> bounds;
  for (uint64_t bound = kFirst; bound <= kLast; bound *= 2) bounds.push_back(bound);
  return bounds;
}

MetricFamilies& MetricFamilies::family_of(const char* name, const char* help) {
  return is_counter_name(name) ? counter(name, help) : gauge(name, help);
}

MetricFamilies& MetricFamilies::counter(const char* name, const char* help) {
  CHECK(is_counter_name(name));
  return family(name, help, prometheus::MetricType::Counter);
}

MetricFamilies& MetricFamilies::gauge(const char* name, const char* help) {
  CHECK(!is_counter_name(name));
  return family(name, help, prometheus::MetricType::Gauge);
}

MetricFamilies& MetricFamilies::family(const char* name, const char* help,
                                       prometheus::MetricType type) {
  CHECK(is_valid(name, help));
  CHECK(std::ranges::none_of(families_, [&](const auto& other) { return other.name == name; }));
  families_.push_back({name, help, type, {}});
  return *this;
}

MetricFamilies& MetricFamilies::sample(double value, const Labels& labels) {
  CHECK(!families_.empty());
  CHECK(std::isfinite(value) && value >= 0);
  prometheus::MetricFamily& family = families_.back();
  CHECK(family.type != prometheus::MetricType::Histogram);
  prometheus::ClientMetric metric;
  metric.label = labels_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  for (const auto& label : metric.label) CHECK(!label.name.empty() && !label.value.empty());
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
  CHECK(!families_.empty() && families_.back().type == prometheus::MetricType::Histogram);
  CHECK(!bounds_ns.empty() && std::ranges::is_sorted(bounds_ns, std::ranges::less_equal()));
  prometheus::ClientMetric metric;
  metric.label = labels_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  // Loads the total first: a concurrent writer can then only make the sum of the buckets larger.
  const uint64_t count = values.count();
  metric.histogram.sample_count = count;
  metric.histogram.sample_sum = static_cast<double>(values.sum_ns()) * kSecondsPerNs;
  uint64_t before = 0;
  for (const uint64_t bound : bounds_ns) {
    CHECK(HistogramBuckets::lower(HistogramBuckets::of(bound)) == bound);
    const uint64_t below = std::min(count, values.count_below(bound));
    CHECK(below >= before);  // a concurrent writer can only increase counts
    before = below;
    metric.histogram.bucket.push_back({below, static_cast<double>(bound) * kSecondsPerNs});
  }
  metric.histogram.bucket.push_back({count, std::numeric_limits<double>::infinity()});
  families_.back().metric.push_back(std::move(metric));
  return *this;
}

MetricFamilies& MetricFamilies::sample(std::span<const uint64_t> counts,
                                       std::span<const uint64_t> bounds_ns, uint64_t sum_ns,
                                       const Labels& labels) {
  // Divides by it: the quotient is the double that is nearest to a limit like 0.0002.
  constexpr double kNsPerSecond = 1e9;
  CHECK(!families_.empty() && families_.back().type == prometheus::MetricType::Histogram);
  CHECK(counts.size() == bounds_ns.size() + 1);
  CHECK(std::ranges::is_sorted(bounds_ns, std::ranges::less_equal()));
  prometheus::ClientMetric metric;
  metric.label = labels_;
  metric.label.insert(metric.label.end(), labels.begin(), labels.end());
  for (const auto& label : metric.label) CHECK(!label.name.empty() && !label.value.empty());
  uint64_t sum = 0;
  for (size_t i = 0; i < bounds_ns.size(); ++i) {
    sum += counts[i];
    metric.histogram.bucket.push_back({sum, static_cast<double>(bounds_ns[i]) / kNsPerSecond});
  }
  sum += counts.back();
  metric.histogram.bucket.push_back({sum, std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = sum;
  metric.histogram.sample_sum = static_cast<double>(sum_ns) / kNsPerSecond;
  families_.back().metric.push_back(std::move(metric));
  return *this;
}

std::vector<prometheus::MetricFamily> MetricFamilies::take() {
  CHECK(std::ranges::none_of(families_, [](const auto& family) { return family.metric.empty(); }));
  return std::move(families_);
}

}  // namespace atolldb
