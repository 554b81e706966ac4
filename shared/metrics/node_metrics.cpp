#include "shared/metrics/node_metrics.h"

#include <span>
#include <string>

#include "shared/base/check.h"
#include "shared/memory/page_header.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/device_watch.h"
#include "shared/metrics/gleaner_families.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

template <auto kCounter>
double sum(const MetricsSegment& metrics) {
  return static_cast<double>(sum_counter(metrics, kCounter));
}

/// Sums of the counters of all threads.
constexpr Metric<MetricsSegment> kWorkerMetrics[] = {
    {"atoll_pages_allocated_total", "Pages taken from the pool of this node.",
     sum<&WorkerMetrics::pages_allocated>},
    {"atoll_pages_retired_total", "Pages unlinked by threads of this node.",
     sum<&WorkerMetrics::pages_retired>},
    {"atoll_pages_sent_home_total", "Retired pages returned to the other nodes that own them.",
     sum<&WorkerMetrics::remote_frees>},
    {"atoll_page_splits_total", "Pages split because they were full.", sum<&WorkerMetrics::splits>},
    {"atoll_page_adoptions_total", "Foster children adopted by their parent page.",
     sum<&WorkerMetrics::adoptions>},
    {"atoll_page_compactions_total", "Pages rewritten without their tombstones.",
     sum<&WorkerMetrics::compactions>},
    {"atoll_page_merges_total", "Pages merged with a neighbour.", sum<&WorkerMetrics::merges>},
    {"atoll_next_layers_total", "Layers added below a slice of long keys.",
     sum<&WorkerMetrics::next_layers>},
    {"atoll_log_written_bytes_total", "Bytes of log records written by workers.",
     sum<&WorkerMetrics::log_bytes>},
    {"atoll_log_stalls_total", "Waits of workers for room in their log buffers.",
     sum<&WorkerMetrics::log_stalls>},
    {"atoll_page_stalls_total", "Waits of workers for free pages of the volatile pool.",
     sum<&WorkerMetrics::page_stalls>},
    {"atoll_page_delays_total",
     "Waits of workers because the node's transactions take pages at the limit.",
     sum<&WorkerMetrics::page_delays>},
    {"atoll_page_delay_seconds_total", "Time of these waits.", sum<&WorkerMetrics::page_delay_ns>,
     1e-9},
    {"atoll_run_gate_waits_total",
     "Waits of workers because as many run transactions as node.running_workers allows.",
     sum<&WorkerMetrics::gate_waits>},
    {"atoll_early_locks_total",
     "Locks that retries took before their first read, because the records had caused aborts.",
     sum<&WorkerMetrics::early_locks>},
    {"atoll_delta_records_added_total",
     "Records brought into memory for a write, without the page of the snapshot that has them.",
     sum<&WorkerMetrics::delta_added>},
    {"atoll_delta_records_drained_total",
     "Such records that were removed from memory because a newer snapshot has them.",
     sum<&WorkerMetrics::delta_drained>},
};

constexpr Metric<LoggerMetrics> kLoggerMetrics[] = {
    {"atoll_logger_written_bytes_total",
     "Bytes written to log files, including headers, markers and padding.",
     field<&LoggerMetrics::written_bytes>},
    {"atoll_logger_blocks_total", "Log blocks written.", field<&LoggerMetrics::blocks>},
    {"atoll_logger_batches_total", "Batches synced. A batch makes one or more epochs durable.",
     field<&LoggerMetrics::batches>},
    {"atoll_logger_files_total", "Log files created.", field<&LoggerMetrics::files>},
    {"atoll_logger_failed_preallocations_total",
     "Attempts to preallocate the next log file that found no space.",
     field<&LoggerMetrics::failed_preallocations>},
    {"atoll_logger_batch_bytes", "Size of the latest batch.", field<&LoggerMetrics::batch_bytes>},
    {"atoll_logger_epoch_lag",
     "Current epoch minus the epoch of the latest batch, when the batch was durable.",
     field<&LoggerMetrics::epoch_lag>},
    {"atoll_logger_lacks_next_file",
     "1 while there is no space for the next log file. The cluster stops when the current file is "
     "full.",
     field<&LoggerMetrics::lacks_next_file>},
};

struct LoggerHistogram {
  const char* name;
  const char* help;
  Histogram LoggerMetrics::* histogram;
};
constexpr LoggerHistogram kLoggerHistograms[] = {
    {"atoll_logger_epoch_end_seconds",
     "Time from the end of the first epoch of a batch until the logger begins the batch.",
     &LoggerMetrics::epoch_end_ns},
    {"atoll_logger_close_seconds", "Time to wait for commits in progress before a batch.",
     &LoggerMetrics::close_ns},
    {"atoll_logger_write_seconds", "Time to write a batch with its marker, without its sync.",
     &LoggerMetrics::write_ns},
    {"atoll_logger_sync_seconds", "Time to sync a batch.", &LoggerMetrics::sync_ns},
};

constexpr Metric<SessionMetrics> kSessionMetrics[] = {
    {"atoll_sessions", "Sessions of clients with this node.", field<&SessionMetrics::open>},
    {"atoll_sessions_opened_total", "Sessions opened by clients.", field<&SessionMetrics::opened>},
    {"atoll_sessions_refused_total", "Sessions refused because of the session limit.",
     field<&SessionMetrics::refused>},
    {"atoll_sessions_broken_total",
     "Sessions closed because the client violated the protocol of the rings.",
     field<&SessionMetrics::broken>},
    {"atoll_session_requests_total", "Requests taken from sessions.",
     field<&SessionMetrics::requests>},
    {"atoll_session_requests_refused_total", "Requests answered `unavailable` or `recovering`.",
     field<&SessionMetrics::unavailable>},
    {"atoll_session_outcomes_unknown_total", "Requests answered `outcome_unknown`.",
     field<&SessionMetrics::outcome_unknown>},
};

constexpr Metric<PayloadMetrics> kPayloadMetrics[] = {
    {"atoll_payload_memory_bytes",
     "Memory that inputs and outputs of more than 64 KiB take while they are transferred.",
     field<&PayloadMetrics::used_bytes>},
    {"atoll_payload_memory_limit_bytes", "Limit of this memory: procedures.payload_memory.",
     field<&PayloadMetrics::limit_bytes>},
    {"atoll_payload_memory_refused_total",
     "Requests answered `unavailable` because this memory had no room for an input or an output.",
     field<&PayloadMetrics::refused>},
};

constexpr Metric<NetworkMetrics> kNetworkMetrics[] = {
    {"atoll_network_sessions", "Sessions over the network with this node.",
     field<&NetworkMetrics::open>},
    {"atoll_network_sessions_opened_total", "Sessions over the network that were opened.",
     field<&NetworkMetrics::opened>},
    {"atoll_network_sessions_refused_total", "Network sessions refused because of their limit.",
     field<&NetworkMetrics::refused_limit>},
    {"atoll_network_keys_refused_total", "Connections refused because of their key.",
     field<&NetworkMetrics::refused_key>},
    {"atoll_network_failed_handshakes_total",
     "Connections that ended during their handshake: other protocols, wrong server keys.",
     field<&NetworkMetrics::failed_handshakes>},
    {"atoll_network_connections", "Connections over the network, with or without a session.",
     field<&NetworkMetrics::connections>},
    {"atoll_network_connections_refused_total",
     "Connections closed because of a limit: their number, time without a session, bytes without "
     "the "
     "end of a message.",
     field<&NetworkMetrics::connections_refused>},
    {"atoll_network_unread_limit_bytes",
     "Most memory that frames of the present connections take before the node reads them.",
     field<&NetworkMetrics::unread_limit_bytes>},
    {"atoll_network_malformed_frames_total", "Frames that violated the protocol.",
     field<&NetworkMetrics::malformed>},
    {"atoll_network_dropped_total", "Sessions ended because the client did not read its answers.",
     field<&NetworkMetrics::dropped>},
    {"atoll_network_requests_total", "Requests received over the network.",
     field<&NetworkMetrics::requests>},
    {"atoll_network_requests_denied_total", "Requests that the rights of the client's key forbid.",
     field<&NetworkMetrics::denied>},
    {"atoll_network_received_bytes_total", "Size of the frames received from clients.",
     field<&NetworkMetrics::bytes_in>},
    {"atoll_network_sent_bytes_total", "Size of the frames sent to clients.",
     field<&NetworkMetrics::bytes_out>},
    {"atoll_network_received_frames_total", "Frames received from clients.",
     field<&NetworkMetrics::frames_in>},
    {"atoll_network_sent_frames_total", "Frames sent to clients.",
     field<&NetworkMetrics::frames_out>},
};

constexpr Metric<NodeShared> kNodeMetrics[] = {
    {"atoll_node_running", "1 while the node accepts transactions.",
     [](const NodeShared& shared) {
       // Acquire pairs with the node's release when it changed its state.
       const uint32_t state = shared.state.load(std::memory_order_acquire);
       return state == static_cast<uint32_t>(NodeState::running) ? 1.0 : 0.0;
     }},
    {"atoll_node_heartbeats_total", "Heartbeats of the node's control loop.",
     field<&NodeShared::heartbeat>},
    {"atoll_workers", "Threads that run transactions.", field<&NodeShared::worker_count>},
    {"atoll_pool_size_bytes", "Size of the node's pool of volatile pages.",
     field<&NodeShared::pages_total>, kPageBytes},
    {"atoll_pool_free_bytes",
     "Size of the free pages of the pool, with those lent to the snapshot cache.",
     field<&NodeShared::pages_free>, kPageBytes},
    {"atoll_pool_limit_bytes_per_second",
     "Size of the pages that transactions may take per second while a snapshot frees pages; 0: no "
     "limit.",
     field<&NodeShared::page_limit>, kPageBytes},
    {"atoll_pool_unallocated_bytes", "Part of the pool for which the kernel has no memory yet.",
     field<&NodeShared::unallocated_bytes>},
    {"atoll_mapped_page_size_bytes", "Size of the pages that the kernel maps for the pool.",
     [](const NodeShared& shared) { return static_cast<double>(shared.header.real_page_bytes); }},
};

/// Adds families with a label `logger`. Adds none without loggers (durability off).
void add_loggers(MetricFamilies& families, std::span<const LoggerMetrics> loggers) {
  if (loggers.empty()) return;
  constexpr const char* kLabel = "logger";
  families.add(kLoggerMetrics, loggers, kLabel);
  for (const LoggerHistogram& each : kLoggerHistograms) {
    families.histogram(each.name, each.help);
    for (size_t i = 0; i < loggers.size(); ++i) {
      families.sample(loggers[i].*each.histogram, latency_bounds_ns(),
                      {{kLabel, std::to_string(i)}});
    }
  }
}

void add_transactions(MetricFamilies& families, const MetricsSegment& metrics) {
  families.counter("atoll_commits_total", "Committed transactions.")
      .sample(sum_counter(metrics, &WorkerMetrics::commits), {{"type", "write"}})
      .sample(sum_counter(metrics, &WorkerMetrics::read_only_commits), {{"type", "read_only"}});
  families.counter("atoll_aborts_total", "Attempts to run a transaction that did not commit.");
  // Results like not_found are reasons, too: they roll back a procedure that returns them.
  for (uint32_t reason = 1; reason < kStatusCount; ++reason) {
    const auto status = static_cast<Status>(reason);
    families.sample(sum_aborts(metrics, status), {{"reason", std::string(to_string(status))}});
  }
}

void add_locality(MetricFamilies& families, const MetricsSegment& metrics) {
  families.counter("atoll_page_accesses_total", "Pages resolved, by the node that owns them.")
      .sample(sum_counter(metrics, &WorkerMetrics::local_accesses), {{"locality", "local"}})
      .sample(sum_counter(metrics, &WorkerMetrics::remote_accesses), {{"locality", "remote"}});
  families.counter("atoll_locks_total", "Locks taken, by the node that owns their page.")
      .sample(sum_counter(metrics, &WorkerMetrics::local_locks), {{"locality", "local"}})
      .sample(sum_counter(metrics, &WorkerMetrics::remote_locks), {{"locality", "remote"}});
}

}  // namespace

std::vector<prometheus::MetricFamily> NodeMetrics::Collect() const {
  // The node sets both counts before it publishes its segments, and never changes them.
  CHECK(metrics_.slot_count == shared_.slot_count && shared_.worker_count <= shared_.slot_count);
  MetricFamilies families({{"node", std::to_string(node_)}});
  add_transactions(families, metrics_);
  if (procedures_ != nullptr) add_procedures(families, *procedures_);
  add_locality(families, metrics_);
  families.add(kWorkerMetrics, metrics_);
  CHECK(shared_.logger_count <= kMaxLoggersPerNode);
  add_loggers(families, {metrics_.loggers, shared_.logger_count});
  if (shared_.logger_count != 0) {
    if (takes_checkpoints_) {
      add_checkpoints(families, metrics_.checkpoint);
    } else {
      add_snapshot_cache(families, metrics_);
      add_storage_caches(families, metrics_, control_);
      add_gleaner(families, metrics_.gleaner);
    }
    add_scrub(families, metrics_.gleaner);
    add_device(families, metrics_.device);
  }
  families.add(kSessionMetrics, metrics_.sessions);
  families.add(kPayloadMetrics, metrics_.sessions.payloads);
  if (network_ != nullptr) families.add(kNetworkMetrics, *network_);
  families.add(kNodeMetrics, shared_);
  return families.take();
}

}  // namespace atolldb
