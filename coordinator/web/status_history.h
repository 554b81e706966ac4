// The last ten minutes of a cluster for its status page: one sample per second, in a ring.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

namespace atolldb {

/// Counters of a cluster, and values that hold at the time of the counts.
struct ClusterCounts {
  uint64_t time_ns = 0;  // of the monotonic clock
  int64_t unix_ms = 0;
  // Counters since the start of the cluster, summed over the nodes.
  uint64_t commits = 0;
  uint64_t aborts = 0;
  uint64_t page_delays = 0;
  uint64_t log_bytes = 0;  // 0 without a log
  // Values at this time.
  uint64_t durability_lag_us = 0;
  uint64_t cache_bytes = 0;               // size of all snapshot caches, with lent pages
  std::vector<double> pool_used_percent;  // by node
};

/// Thread: any.
class StatusHistory {
 public:
  static constexpr size_t kCapacity = 600;
  static constexpr std::chrono::milliseconds kPeriod{1'000};

  StatusHistory();

  /// Adds a sample with the rates since the previous call. The first call adds no sample. A call
  /// without progress of the monotonic clock changes nothing. If the ring is full, the sample
  /// replaces the oldest one.
  void add(const ClusterCounts& counts);
  /// Returns the samples with numbers after `since`, oldest first, as one array for each value.
  /// coordinator/web/README.md describes the members. If `since` is larger than all numbers, it is
  /// of an earlier history, and the result has all samples.
  nlohmann::json json(uint64_t since) const;

 private:
  /// One sample. `seconds` is longer than kPeriod if the process was suspended.
  struct Sample {
    int64_t unix_ms = 0;
    double seconds = 0;
    double transactions_per_s = 0;
    double aborts_per_s = 0;
    double page_delays_per_s = 0;
    double log_bytes_per_s = 0;
    double durability_lag_ms = 0;
    double cache_bytes = 0;
    std::vector<double> pool_used_percent;
  };

  /// REQUIRES: the ring has the sample.
  const Sample& sample(uint64_t number) const { return ring_[(number - 1) % kCapacity]; }

  const int64_t started_ms_;  // identifies the history
  mutable std::mutex mutex_;
  std::optional<ClusterCounts> previous_;  // guarded by mutex_, as are the members below
  std::vector<Sample> ring_;               // sample `number` is at (number - 1) % kCapacity
  uint64_t last_ = 0;                      // number of the newest sample; the first one has 1
};

}  // namespace atolldb
