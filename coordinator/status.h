// The cluster's status as JSON. It reads shared memory only and asks no node, so it works while a
// node hangs.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/epoch/acknowledgement_times.h"
#include "coordinator/web/status_history.h"
#include "shared/config/config.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/node_layout.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

/// The status page asks for the status several times a second. Its own throughput keeps those of
/// the control requests as long as their senders expect.
enum class StatusReader : uint8_t { control, status_page };
inline constexpr size_t kStatusReaderCount = 2;

/// Thread: any.
class StatusReport {
 public:
  StatusReport(const Config& config, const ControlSegment& control, std::vector<NodeShared*> nodes,
               std::vector<const MetricsSegment*> metrics);

  /// Sets the URL of the status page.
  void set_status_page(std::string url);
  /// Sets the endpoints by role: {"coordinator": "127.0.0.1:9101", "node0": ...}. The member
  /// "network" has those of network ports: {"node0": {"endpoint": ..., "key": ...}}.
  void set_metrics_endpoints(nlohmann::json endpoints);
  /// Returns the status; coordinator/README.md describes the members. The throughput covers the
  /// time since the last call for this reader.
  nlohmann::json write(nlohmann::json storages, StatusReader reader);
  /// Returns the counts for the history of the status page.
  ClusterCounts counts() const;
  /// Adds to a description of a storage its operations, and its counts in the snapshot caches of
  /// all nodes.
  void add_counts(nlohmann::json& storage) const;
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
  std::string status_page_;           // URL; empty: none
  /// Commits at the last status of a reader.
  struct Mark {
    uint64_t commits = 0;
    std::chrono::steady_clock::time_point time = std::chrono::steady_clock::now();
  };
  std::array<Mark, kStatusReaderCount> marks_;  // by StatusReader
};

}  // namespace atolldb
