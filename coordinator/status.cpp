#include "coordinator/status.h"

#include <cstdio>
#include <utility>

#include "shared/base/check.h"
#include "shared/memory/control_layout.h"
#include "shared/memory/state_names.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {
namespace {

using Json = nlohmann::json;

std::string uuid_text(const uint64_t uuid[2]) {
  char text[40];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(uuid[0]),
                static_cast<unsigned long long>(uuid[1]));
  return text;
}

Json quantiles_us(const Histogram& histogram) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  return {{"p50", us(histogram.quantile_ns(0.5))},
          {"p99", us(histogram.quantile_ns(0.99))},
          {"max", us(histogram.max_ns())}};
}

/// Returns an empty array without a log.
Json loggers(const NodeShared& node, const MetricsSegment& metrics) {
  Json loggers = Json::array();
  for (uint32_t index = 0; index < node.logger_count; ++index) {
    const LoggerSlot& slot = node.loggers[index];
    const LoggerMetrics& counts = metrics.loggers[index];
    loggers.push_back(
        {{"logger", index},
         // Acquire pairs with the logger's releases.
         {"durable_epoch", slot.durable_epoch.load(std::memory_order_acquire)},
         {"failed", slot.failure.load(std::memory_order_acquire) != 0},
         {"written_bytes", counts.written_bytes.get()},
         {"batches", counts.batches.get()},
         {"files", counts.files.get()},
         {"lacks_next_file", counts.lacks_next_file.load(std::memory_order_relaxed) != 0},
         {"failed_preallocations", counts.failed_preallocations.get()},
         {"epoch_lag", counts.epoch_lag.load(std::memory_order_relaxed)},
         {"write_us", quantiles_us(counts.write_ns)},
         {"sync_us", quantiles_us(counts.sync_ns)}});
  }
  return loggers;
}

/// All values are 0 without a log.
Json snapshot_cache(const MetricsSegment& metrics) {
  const auto bytes = [](const std::atomic<uint64_t>& frames) {
    return frames.load(std::memory_order_relaxed) * kPageBytes;
  };
  const SnapshotCacheMetrics& cache = metrics.snapshot_cache;
  return {{"bytes", bytes(cache.frames)},
          {"used_bytes", bytes(cache.frames_in_use)},
          {"reads", sum_counter(metrics, &WorkerMetrics::snapshot_reads)},
          {"misses", cache.misses.load(std::memory_order_relaxed)},
          {"evictions", cache.evictions.load(std::memory_order_relaxed)}};
}

/// All values are 0 without a log.
Json scrub(const GleanerMetrics& metrics) {
  // Relaxed: for display.
  const auto get = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  return {{"read_bytes", get(metrics.scrubbed_bytes)},
          {"percent", get(metrics.scrub_percent)},
          {"finished_at_s", get(metrics.scrub_finished_s)},
          {"damaged", get(metrics.scrub_damaged)}};
}

}  // namespace

StatusReport::StatusReport(const Config& config, const ControlSegment& control,
                           std::vector<NodeShared*> nodes,
                           std::vector<const MetricsSegment*> metrics)
    : config_(config), control_(control), nodes_(std::move(nodes)), metrics_(std::move(metrics)) {
  CHECK(nodes_.size() == config_.nodes.size() && metrics_.size() == nodes_.size());
}

void StatusReport::set_metrics_endpoints(Json endpoints) {
  const std::lock_guard guard(mutex_);
  metrics_endpoints_ = std::move(endpoints);
}

Json StatusReport::node(uint32_t index, uint64_t& commits) const {
  NodeShared& node = *nodes_[index];
  const MetricsSegment& metrics = *metrics_[index];
  // Acquire pairs with the node's release when it changed its state.
  const auto state = static_cast<NodeState>(node.state.load(std::memory_order_acquire));
  Json aborts = Json::object();
  for (uint32_t reason = 0; reason < kStatusCount; ++reason) {
    const auto status = static_cast<Status>(reason);
    const uint64_t count = sum_aborts(metrics, status);
    if (count != 0) aborts[std::string(to_string(status))] = count;
  }
  const uint64_t writes = sum_counter(metrics, &WorkerMetrics::commits);
  const uint64_t reads = sum_counter(metrics, &WorkerMetrics::read_only_commits);
  commits += writes + reads;
  return {{"node", index},
          {"state", to_string(state)},
          {"pid", node.header.owner_pid},
          {"workers", node.worker_count},
          {"cpus", config_.nodes[index].cpus},
          {"numa", config_.nodes[index].numa_node},
          {"real_page_bytes", node.header.real_page_bytes},
          {"heartbeats", node.heartbeat.load(std::memory_order_relaxed)},
          {"pool",
           {{"total", node.pages_total.load(std::memory_order_relaxed)},
            {"free", node.pages_free.load(std::memory_order_relaxed)},
            {"page_bytes", kPageBytes}}},
          {"loggers", loggers(node, metrics)},
          {"snapshot_cache", snapshot_cache(metrics)},
          {"scrub", scrub(metrics.gleaner)},
          {"log_stalls", sum_counter(metrics, &WorkerMetrics::log_stalls)},
          {"page_stalls", sum_counter(metrics, &WorkerMetrics::page_stalls)},
          {"commits", writes},
          {"read_only_commits", reads},
          {"aborts", std::move(aborts)},
          {"local_accesses", sum_counter(metrics, &WorkerMetrics::local_accesses)},
          {"remote_accesses", sum_counter(metrics, &WorkerMetrics::remote_accesses)},
          {"local_locks", sum_counter(metrics, &WorkerMetrics::local_locks)},
          {"remote_locks", sum_counter(metrics, &WorkerMetrics::remote_locks)},
          {"remote_frees", sum_counter(metrics, &WorkerMetrics::remote_frees)},
          {"pages_allocated", sum_counter(metrics, &WorkerMetrics::pages_allocated)},
          {"pages_retired", sum_counter(metrics, &WorkerMetrics::pages_retired)}};
}

Json StatusReport::process(const std::string& role, const SegmentHeader& header) const {
  Json process = {{"role", role},
                  {"pid", header.owner_pid},
                  {"start_time", header.owner_start_time},
                  {"metrics", nullptr}};
  const auto endpoint = metrics_endpoints_.find(role);
  if (metrics_endpoints_.is_object() && endpoint != metrics_endpoints_.end()) {
    process["metrics"] = *endpoint;
  }
  return process;
}

Json StatusReport::write(Json storages) {
  const std::lock_guard guard(mutex_);
  uint64_t commits = 0;
  Json nodes = Json::array();
  Json processes = Json::array({process("coordinator", control_.header)});
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    nodes.push_back(node(index, commits));
    processes.push_back(process("node" + std::to_string(index), nodes_[index]->header));
  }
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_time_).count();
  const double throughput =
      seconds > 0 ? static_cast<double>(commits - last_commits_) / seconds : 0.0;
  last_commits_ = commits;
  last_time_ = now;
  // Acquire pairs with the releases of the coordinator's own threads.
  const auto state = static_cast<ClusterState>(control_.state.load(std::memory_order_acquire));
  return {{"schema_version", 1},
          {"name", config_.cluster.name},
          {"uuid", uuid_text(control_.header.cluster_uuid)},
          {"incarnation", control_.incarnation},
          {"state", to_string(state)},
          {"epochs",
           {{"current", control_.epochs.current.load(std::memory_order_acquire)},
            {"durable", latest_settled_epoch(control_.epochs)},
            {"durability_lag_us", durability_lag_us(control_)},
            {"oldest_begin", control_.epochs.oldest_begin.load(std::memory_order_acquire)}}},
          {"durability", durability_text(config_)},
          {"throughput_tps", throughput},
          {"throughput_seconds", seconds},
          {"nodes", std::move(nodes)},
          {"processes", std::move(processes)},
          {"storages", std::move(storages)}};
}

}  // namespace atolldb
