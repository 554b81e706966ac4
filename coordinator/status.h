// The cluster's status as JSON. It reads shared memory only and asks no node, so it works while a
// node hangs.
#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/epoch/acknowledgement_times.h"
#include "shared/config/config.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// Thread: any.
class StatusReport {
 public:
  StatusReport(const Config& config, const ControlSegment& control, std::vector<NodeShared*> nodes,
               std::vector<const MetricsSegment*> metrics);

  /// Sets the endpoints by role: {"coordinator": "127.0.0.1:9101", "node0": ...}.
  void set_metrics_endpoints(nlohmann::json endpoints);
  /// Returns the status; coordinator/README.md describes the members. The throughput covers the
  /// time since the last call.
  nlohmann::json write(nlohmann::json storages);
  /// Adds to a description of a storage its counts in the snapshot caches of all nodes.
  void add_cache_counts(nlohmann::json& storage) const;
  /// Returns the times of the stages of epochs, over all loggers, and the slowest epoch from
  /// `slowest_since` on. `has_buckets`: with the buckets of the histograms.
  nlohmann::json acknowledgement(const AcknowledgementTimes& times, uint64_t slowest_since,
                                 bool has_buckets) const;

 private:
  nlohmann::json node(uint32_t index, uint64_t& commits) const;
  nlohmann::json process(const std::string& role, const SegmentHeader& header) const;

  const Config config_;
  const ControlSegment& control_;
  const std::vector<NodeShared*> nodes_;
  const std::vector<const MetricsSegment*> metrics_;
  std::mutex mutex_;
  nlohmann::json metrics_endpoints_;  // guarded by mutex_, as are the members below
  uint64_t last_commits_ = 0;
  std::chrono::steady_clock::time_point last_time_ = std::chrono::steady_clock::now();
};

}  // namespace atolldb
