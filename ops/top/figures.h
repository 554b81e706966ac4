// The figures of `atoll top`: rates and latencies between two samples of a cluster.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ops/top/sample.h"

namespace atolldb::top {

/// Latencies in microseconds. All are 0 if there were none.
struct Quantiles {
  uint64_t count = 0;
  double p50_us = 0;
  double p99_us = 0;
  double p999_us = 0;
};

/// Returns a quantile of latencies that were counted in buckets. `bounds_ns`: upper limits of all
/// buckets except the last. The values of a bucket count as evenly spread, so a result is off by at
/// most the width of its bucket. In the last bucket the result is its lower limit. Returns 0
/// without values. REQUIRES: counts.size() == bounds_ns.size() + 1.
double quantile_us(std::span<const uint64_t> counts, std::span<const uint64_t> bounds_ns,
                   double quantile);

struct ProcedureFigures {
  std::string name;
  double commits_per_s = 0;
  double aborts_per_s = 0;
  double retries_per_s = 0;
  Quantiles execution;
  Quantiles durable;
  std::string abort_reason;  // the most frequent one; "" without aborts
};

struct StorageFigures {
  std::string name;
  std::string type;
  double operations_per_s = 0;  // records searched for, appended or scanned
  double pages_read_per_s = 0;  // from the device into snapshot caches
  double evictions_per_s = 0;
  uint64_t cache_bytes = 0;
  uint64_t pages_read = 0;  // since the start
};

struct NodeFigures {
  uint32_t node = 0;
  std::string state;
  double commits_per_s = 0;
  double aborts_per_s = 0;
  double pool_used_percent = 0;
  double remote_percent = 0;  // of the accesses to pages
  double log_bytes_per_s = 0;
  double syncs_per_s = 0;
  uint64_t epoch_lag = 0;  // of the node's slowest logger
  uint64_t cache_bytes = 0;
  double cache_hit_percent = 0;
  uint64_t sessions = 0;
  double requests_per_s = 0;
  double stalls_per_s = 0;  // waits for free pages, for the page limit, and for room in a log
};

struct SessionFigures {
  std::string session;  // NODE/SESSION
  std::string state;
  int64_t pid = 0;  // 0: a client in the node's process
  std::string program;
  uint64_t in_flight = 0;
  std::string procedure;  // of the oldest request in flight, or ""
  double oldest_s = 0;
  double answered_per_s = 0;
};

struct Figures {
  std::string name;
  std::string state;
  std::string durability;
  std::string note;     // why figures are missing, or ""
  std::string problem;  // the first problem of the cluster, or ""
  size_t problems = 0;
  double seconds = 0;      // between the samples; 0: no rates are known
  bool is_recent = false;  // the figures below are known
  double write_commits_per_s = 0;
  double read_only_commits_per_s = 0;
  std::map<std::string, double> aborts_per_s;  // by reason; without those of rate 0
  Quantiles execution;                         // of all procedures
  Quantiles durable;                           // of all procedures
  std::optional<Quantiles> epochs;  // from the end of an epoch to its durability; nothing: no log
  uint64_t durability_lag_us = 0;
  double log_bytes_per_s = 0;
  uint64_t sessions = 0;
  double requests_per_s = 0;
  uint64_t payload_bytes = 0;  // of long inputs and outputs in transfer
  double refused_per_s = 0;
  uint64_t pool_bytes = 0;
  double pool_used_percent = 0;
  uint64_t cache_bytes = 0;
  double cache_hit_percent = 0;
  uint64_t snapshot = 0;  // the newest; 0: none
  uint64_t snapshot_epoch = 0;
  std::string job;  // phase of the snapshot job, or ""
  std::vector<ProcedureFigures> procedure_rows;
  std::vector<StorageFigures> storage_rows;
  std::vector<NodeFigures> node_rows;
  std::vector<SessionFigures> session_rows;

  double commits_per_s() const { return write_commits_per_s + read_only_commits_per_s; }
  double all_aborts_per_s() const;
};

/// Returns the figures of `after`. Rates are known if both samples have the counters of one
/// incarnation of the cluster, and `after` is newer.
Figures figures_between(const Sample& before, const Sample& after);

/// Returns the figures as JSON (ops/REFERENCE.md).
Json figures_json(const Figures& figures);

}  // namespace atolldb::top
