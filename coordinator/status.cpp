#include "coordinator/status.h"

#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

#include "coordinator/memory_advice.h"
#include "shared/base/check.h"
#include "shared/config/job_threads.h"
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
          {"p99.9", us(histogram.quantile_ns(0.999))},
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
         {"epoch_end_us", quantiles_us(counts.epoch_end_ns)},
         {"close_us", quantiles_us(counts.close_ns)},
         {"write_us", quantiles_us(counts.write_ns)},
         {"sync_us", quantiles_us(counts.sync_ns)}});
  }
  return loggers;
}

std::string logger_name(size_t node, uint32_t logger) {
  return "node" + std::to_string(node) + "/" + std::to_string(logger);
}

/// Histograms of the loggers' stages, in the order of EpochStage.
constexpr Histogram LoggerMetrics::* kLoggerStages[] = {
    &LoggerMetrics::epoch_end_ns, &LoggerMetrics::close_ns, &LoggerMetrics::write_ns,
    &LoggerMetrics::sync_ns};
static_assert(std::size(kLoggerStages) == kLoggerStageCount);

/// The times of one stage, from several histograms.
class StageTimes {
 public:
  explicit StageTimes(std::string name) : name_(std::move(name)) {}

  /// `who`: name of the logger or node that the histogram belongs to, or "".
  void add(const Histogram& histogram, std::string who) {
    sum_->merge(histogram);
    const uint64_t p999_ns = histogram.quantile_ns(0.999);
    if (p999_ns < slowest_ns_) return;
    slowest_ns_ = p999_ns;
    slowest_ = std::move(who);
  }
  Json json(bool has_buckets) const {
    Json json = {{"stage", name_}, {"slowest", slowest_}, {"us", quantiles_us(*sum_)}};
    if (has_buckets) json["buckets"] = sum_->sparse();
    return json;
  }

 private:
  std::string name_;
  std::unique_ptr<Histogram> sum_ = std::make_unique<Histogram>();
  std::string slowest_;
  uint64_t slowest_ns_ = 0;  // largest p99.9 of all histograms so far
};

Json to_json(const EpochTrace& trace) {
  const auto us = [](uint64_t ns) { return static_cast<double>(ns) * 1e-3; };
  Json stages = Json::array();
  for (uint32_t stage = 0; stage < kEpochStageCount; ++stage) {
    stages.push_back({{"stage", kEpochStageNames[stage]}, {"us", us(trace.stage_ns[stage])}});
  }
  const uint64_t age_ns = ns_since(trace.published_at_ns, monotonic_time_ns());
  return {{"epoch", trace.epoch},
          {"total_us", us(trace.total_ns)},
          {"stages", std::move(stages)},
          {"last_logger", logger_name(trace.node, trace.logger)},
          {"age_s", age_ns / 1'000'000'000}};
}

/// All values are 0 without a log.
Json snapshot_cache(const MetricsSegment& metrics) {
  const auto bytes = [](const std::atomic<uint64_t>& frames) {
    return frames.load(std::memory_order_relaxed) * kPageBytes;
  };
  const SnapshotCacheMetrics& cache = metrics.snapshot_cache;
  return {{"bytes", bytes(cache.frames)},
          {"lent_bytes", bytes(cache.lent_frames)},
          {"used_bytes", bytes(cache.frames_in_use)},
          {"reads", sum_counter(metrics, &WorkerMetrics::snapshot_reads)},
          {"misses", cache.misses.load(std::memory_order_relaxed)},
          {"evictions", cache.evictions.load(std::memory_order_relaxed)},
          {"ghost_hits", cache.ghost_hits.load(std::memory_order_relaxed)},
          {"to_warm_bytes", bytes(cache.pages_to_warm)},
          {"warmed_bytes", bytes(cache.pages_warmed)}};
}

/// The budget of a node's memory, and where more of it would save waits.
Json memory_of(const Config::Memory& memory, const NodeShared& node,
               const MetricsSegment& metrics) {
  const SnapshotCacheMetrics& cache = metrics.snapshot_cache;
  // Relaxed: for display.
  const MemoryAdvice advice =
      advise_memory({.pool_bytes = node.pages_total.load(std::memory_order_relaxed) * kPageBytes,
                     .cache_bytes = cache.frames.load(std::memory_order_relaxed) * kPageBytes,
                     .ghost_hits = cache.ghost_hits.load(std::memory_order_relaxed),
                     .page_delay_ns = sum_counter(metrics, &WorkerMetrics::page_delay_ns)});
  return {{"total_bytes", memory.total},
          {"cache_us_per_mib", advice.cache_us_per_mib},
          {"pool_us_per_mib", advice.pool_us_per_mib},
          {"more", kMoreMemoryNames[static_cast<size_t>(advice.more)]}};
}

Json sessions_of(const SessionMetrics& metrics) {
  // Relaxed: for display.
  const auto get = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  return {{"open", get(metrics.open)},
          {"opened", get(metrics.opened)},
          {"refused", get(metrics.refused)},
          {"broken", get(metrics.broken)},
          {"requests", get(metrics.requests)},
          {"unavailable", get(metrics.unavailable)},
          {"payload_bytes", get(metrics.payloads.used_bytes)},
          {"payload_limit_bytes", get(metrics.payloads.limit_bytes)},
          {"payloads_refused", get(metrics.payloads.refused)}};
}

/// The numbers of threads that snapshot jobs have on the node.
Json job_threads(const NodeConfig& node) {
  const JobThreads running = running_threads(node);
  const JobThreads recovery = recovery_threads(node);
  return {{"mappers", running.mappers},
          {"reducers", running.reducers},
          {"recovery_mappers", recovery.mappers},
          {"recovery_reducers", recovery.reducers}};
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

void StatusReport::set_status_page(std::string url) {
  const std::lock_guard guard(mutex_);
  status_page_ = std::move(url);
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
            {"limit_pages_per_s", node.page_limit.load(std::memory_order_relaxed)},
            {"unallocated_bytes", node.unallocated_bytes.load(std::memory_order_relaxed)},
            {"page_bytes", kPageBytes}}},
          {"memory", memory_of(config_.memory, node, metrics)},
          {"loggers", loggers(node, metrics)},
          {"snapshot_cache", snapshot_cache(metrics)},
          {"job_threads", job_threads(config_.nodes[index])},
          {"scrub", scrub(metrics.gleaner)},
          {"sessions", sessions_of(metrics.sessions)},
          {"log_stalls", sum_counter(metrics, &WorkerMetrics::log_stalls)},
          {"page_stalls", sum_counter(metrics, &WorkerMetrics::page_stalls)},
          {"page_delays", sum_counter(metrics, &WorkerMetrics::page_delays)},
          {"page_delay_ms", sum_counter(metrics, &WorkerMetrics::page_delay_ns) / 1'000'000},
          {"gate_waits", sum_counter(metrics, &WorkerMetrics::gate_waits)},
          {"delta_added", sum_counter(metrics, &WorkerMetrics::delta_added)},
          {"delta_drained", sum_counter(metrics, &WorkerMetrics::delta_drained)},
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

Json StatusReport::acknowledgement(const AcknowledgementTimes& times, uint64_t slowest_since,
                                   bool has_buckets) const {
  Json stages = Json::array();
  for (uint32_t stage = 0; stage < kLoggerStageCount; ++stage) {
    StageTimes sum(kEpochStageNames[stage]);
    for (size_t node = 0; node < nodes_.size(); ++node) {
      for (uint32_t logger = 0; logger < nodes_[node]->logger_count; ++logger) {
        sum.add(metrics_[node]->loggers[logger].*kLoggerStages[stage], logger_name(node, logger));
      }
    }
    stages.push_back(sum.json(has_buckets));
  }
  StageTimes marker(kEpochStageNames[static_cast<size_t>(EpochStage::marker)]);
  for (size_t node = 0; node < nodes_.size(); ++node) {
    marker.add(times.metrics().marker_ns[node], "node" + std::to_string(node));
  }
  stages.push_back(marker.json(has_buckets));
  StageTimes publish(kEpochStageNames[static_cast<size_t>(EpochStage::publish)]);
  publish.add(times.metrics().publish_ns, "");
  stages.push_back(publish.json(has_buckets));
  StageTimes total("total");
  total.add(times.metrics().total_ns, "");
  stages.push_back(total.json(has_buckets));
  const auto slowest = times.slowest().since(slowest_since);
  return {{"stages", std::move(stages)}, {"slowest_epoch", slowest ? to_json(*slowest) : Json()}};
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
  if (metrics_endpoints_.is_object() && metrics_endpoints_.contains("network")) {
    const Json& ports = metrics_endpoints_["network"];
    if (ports.contains(role)) process["network"] = ports[role];
  }
  return process;
}

void StatusReport::add_counts(Json& storage) const {
  const auto id = storage.at("id").get<uint32_t>();
  storage["operations"] = storage_operations(metrics_, control_.storages[id % kMaxStorages]);
  StorageCacheCounts sum;
  for (const MetricsSegment* metrics : metrics_) sum += storage_cache_counts(*metrics, id);
  storage["snapshot_cache"] = {{"used_bytes", sum.pages * kPageBytes},
                               {"pages_read", sum.pages_read},
                               {"evictions", sum.evictions}};
}

ClusterCounts StatusReport::counts() const {
  ClusterCounts counts;
  counts.time_ns = monotonic_time_ns();
  counts.unix_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  counts.durability_lag_us = durability_lag_us(control_);
  for (size_t index = 0; index < nodes_.size(); ++index) {
    const NodeShared& node = *nodes_[index];
    const MetricsSegment& metrics = *metrics_[index];
    counts.commits += sum_counter(metrics, &WorkerMetrics::commits) +
                      sum_counter(metrics, &WorkerMetrics::read_only_commits);
    for (uint32_t reason = 0; reason < kStatusCount; ++reason) {
      counts.aborts += sum_aborts(metrics, static_cast<Status>(reason));
    }
    counts.page_delays += sum_counter(metrics, &WorkerMetrics::page_delays);
    for (uint32_t logger = 0; logger < node.logger_count; ++logger) {
      counts.log_bytes += metrics.loggers[logger].written_bytes.get();
    }
    // Relaxed: for display.
    counts.cache_bytes +=
        metrics.snapshot_cache.frames.load(std::memory_order_relaxed) * kPageBytes;
    const uint64_t total = node.pages_total.load(std::memory_order_relaxed);
    const uint64_t unused = node.pages_free.load(std::memory_order_relaxed);
    const double used = total > unused ? static_cast<double>(total - unused) : 0.0;
    counts.pool_used_percent.push_back(total > 0 ? 100 * used / static_cast<double>(total) : 0);
  }
  return counts;
}

Json StatusReport::write(Json storages, StatusReader reader) {
  const std::lock_guard guard(mutex_);
  uint64_t commits = 0;
  Json nodes = Json::array();
  Json processes = Json::array({process("coordinator", control_.header)});
  for (uint32_t index = 0; index < nodes_.size(); ++index) {
    nodes.push_back(node(index, commits));
    processes.push_back(process("node" + std::to_string(index), nodes_[index]->header));
  }
  const auto now = std::chrono::steady_clock::now();
  Mark& last = marks_.at(static_cast<size_t>(reader));
  const double seconds = std::chrono::duration<double>(now - last.time).count();
  const double throughput =
      seconds > 0 ? static_cast<double>(commits - last.commits) / seconds : 0.0;
  last = {commits, now};
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
          {"status_page", status_page_.empty() ? Json() : Json(status_page_)},
          {"throughput_tps", throughput},
          {"throughput_seconds", seconds},
          {"nodes", std::move(nodes)},
          {"processes", std::move(processes)},
          {"storages", std::move(storages)}};
}

}  // namespace atolldb
