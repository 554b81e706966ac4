#include "coordinator/web/status_history.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shared/base/check.h"

namespace atolldb {
namespace {

/// Returns the value with one digit after the point, so that its text is short.
double with_one_digit(double value) { return std::round(value * 10) / 10; }

double rate(uint64_t before, uint64_t now, double seconds) {
  CHECK(seconds > 0);
  // Sums over threads that count meanwhile may seem to decrease.
  return now > before ? with_one_digit(static_cast<double>(now - before) / seconds) : 0;
}

}  // namespace

StatusHistory::StatusHistory()
    : started_ms_(std::chrono::duration_cast<std::chrono::milliseconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count()) {
  ring_.reserve(kCapacity);
}

void StatusHistory::add(const ClusterCounts& counts) {
  const std::lock_guard guard(mutex_);
  if (!previous_) {
    previous_ = counts;
    return;
  }
  if (counts.time_ns <= previous_->time_ns) return;
  const double seconds = static_cast<double>(counts.time_ns - previous_->time_ns) * 1e-9;
  Sample sample;
  sample.unix_ms = counts.unix_ms;
  sample.seconds = with_one_digit(seconds);
  sample.transactions_per_s = rate(previous_->commits, counts.commits, seconds);
  sample.aborts_per_s = rate(previous_->aborts, counts.aborts, seconds);
  sample.page_delays_per_s = rate(previous_->page_delays, counts.page_delays, seconds);
  sample.log_bytes_per_s = std::round(rate(previous_->log_bytes, counts.log_bytes, seconds));
  sample.durability_lag_ms = with_one_digit(static_cast<double>(counts.durability_lag_us) / 1'000);
  sample.cache_bytes = static_cast<double>(counts.cache_bytes);
  for (const double percent : counts.pool_used_percent) {
    sample.pool_used_percent.push_back(with_one_digit(percent));
  }
  previous_ = counts;
  const size_t place = last_ % kCapacity;
  ++last_;
  if (place == ring_.size()) {
    ring_.push_back(std::move(sample));
  } else {
    ring_[place] = std::move(sample);
  }
  CHECK(ring_.size() == std::min<uint64_t>(last_, kCapacity));
}

nlohmann::json StatusHistory::json(uint64_t since) const {
  using Array = nlohmann::json::array_t;
  const std::lock_guard guard(mutex_);
  const uint64_t first = last_ - ring_.size() + 1;  // number of the oldest sample
  const uint64_t begin = since > last_ ? first : std::max(first, since + 1);
  const auto values = [&](auto value) {
    Array array;
    array.reserve(last_ + 1 - begin);
    for (uint64_t number = begin; number <= last_; ++number) array.push_back(value(sample(number)));
    return array;
  };
  const size_t nodes = previous_ ? previous_->pool_used_percent.size() : 0;
  Array pools;
  for (size_t node = 0; node < nodes; ++node) {
    pools.push_back(values([node](const Sample& sample) {
      return node < sample.pool_used_percent.size() ? sample.pool_used_percent[node] : 0.0;
    }));
  }
  return {
      {"schema_version", 1},
      {"started_ms", started_ms_},
      {"period_ms", kPeriod.count()},
      {"capacity", kCapacity},
      {"last", last_},
      {"time_ms", values([](const Sample& sample) { return sample.unix_ms; })},
      {"seconds", values([](const Sample& sample) { return sample.seconds; })},
      {"transactions_per_s",
       values([](const Sample& sample) { return sample.transactions_per_s; })},
      {"aborts_per_s", values([](const Sample& sample) { return sample.aborts_per_s; })},
      {"page_delays_per_s", values([](const Sample& sample) { return sample.page_delays_per_s; })},
      {"log_bytes_per_s", values([](const Sample& sample) { return sample.log_bytes_per_s; })},
      {"durability_lag_ms", values([](const Sample& sample) { return sample.durability_lag_ms; })},
      {"snapshot_cache_bytes", values([](const Sample& sample) { return sample.cache_bytes; })},
      {"pool_used_percent", std::move(pools)}};
}

}  // namespace atolldb
