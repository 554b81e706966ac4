#include "shared/metrics/node_metrics.h"

#include <string>

#include "shared/memory/page_header.h"
#include "shared/memory/worker_metrics.h"
#include "shared/metrics/device_families.h"
#include "shared/metrics/gleaner_families.h"
#include "shared/metrics/logger_families.h"
#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

/// Counters without labels other than the node.
struct PlainCounter {
  const char* name;
  const char* help;
  Counter WorkerMetrics::* counter;
};

constexpr PlainCounter kPlainCounters[] = {
    {"atoll_pages_allocated_total", "Pages taken from the pool of this node.",
     &WorkerMetrics::pages_allocated},
    {"atoll_pages_retired_total", "Pages unlinked by threads of this node.",
     &WorkerMetrics::pages_retired},
    {"atoll_pages_sent_home_total", "Retired pages given back to the other node that owns them.",
     &WorkerMetrics::remote_frees},
    {"atoll_page_splits_total", "Pages split because they were full.", &WorkerMetrics::splits},
    {"atoll_page_adoptions_total", "Foster children adopted by their parent page.",
     &WorkerMetrics::adoptions},
    {"atoll_page_compactions_total", "Pages rewritten to drop dead records.",
     &WorkerMetrics::compactions},
    {"atoll_page_merges_total", "Pages merged with their neighbour.", &WorkerMetrics::merges},
    {"atoll_next_layers_total", "Layers added below a slice of long keys.",
     &WorkerMetrics::next_layers},
    {"atoll_log_written_bytes_total", "Bytes of log records written.", &WorkerMetrics::log_bytes},
    {"atoll_log_stalls_total", "Times that a worker waited for room in its log buffer.",
     &WorkerMetrics::log_stalls},
    {"atoll_page_stalls_total", "Times that a worker waited for free pages of the volatile pool.",
     &WorkerMetrics::page_stalls},
};

void add_transactions(MetricFamilies& families, const MetricsSegment& metrics) {
  families.counter("atoll_commits_total", "Committed transactions.")
      .sample(sum_counter(metrics, &WorkerMetrics::commits), {{"type", "write"}})
      .sample(sum_counter(metrics, &WorkerMetrics::read_only_commits), {{"type", "read_only"}});
  families.counter("atoll_aborts_total", "Attempts of transactions that did not commit.");
  // Results like not_found are reasons too: a procedure that returns one is rolled back.
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

void add_sessions(MetricFamilies& families, const SessionMetrics& sessions) {
  const auto value = [](const std::atomic<uint64_t>& word) {
    return word.load(std::memory_order_relaxed);
  };
  families.gauge("atoll_sessions", "Sessions of clients with this node.")
      .sample(value(sessions.open));
  families.counter("atoll_sessions_opened_total", "Sessions that clients have opened.")
      .sample(value(sessions.opened));
  families.counter("atoll_sessions_refused_total", "Sessions refused because of their limit.")
      .sample(value(sessions.refused));
  families
      .counter("atoll_sessions_broken_total", "Sessions ended because their client broke rules.")
      .sample(value(sessions.broken));
  families.counter("atoll_session_requests_total", "Requests taken from sessions.")
      .sample(value(sessions.requests));
  families
      .counter("atoll_session_requests_refused_total",
               "Requests answered `unavailable` or `recovering`.")
      .sample(value(sessions.unavailable));
  families.counter("atoll_session_outcomes_unknown_total", "Requests answered `outcome_unknown`.")
      .sample(value(sessions.outcome_unknown));
}

void add_gauges(MetricFamilies& families, const NodeShared& shared) {
  // Acquire pairs with the node's release when it changed its state.
  const auto state = static_cast<NodeState>(shared.state.load(std::memory_order_acquire));
  families.gauge("atoll_node_running", "1 while the node accepts transactions.")
      .sample(state == NodeState::running ? 1.0 : 0.0);
  families.counter("atoll_node_heartbeats_total", "Signs of life of the node's control loop.")
      .sample(shared.heartbeat.load(std::memory_order_relaxed));
  families.gauge("atoll_workers", "Threads that run transactions.")
      .sample(uint64_t{shared.worker_count});
  families.gauge("atoll_pool_size_bytes", "Size of the node's pool of volatile pages.")
      .sample(shared.pages_total.load(std::memory_order_relaxed) * kPageBytes);
  families.gauge("atoll_pool_free_bytes", "Part of the pool that no page uses.")
      .sample(shared.pages_free.load(std::memory_order_relaxed) * kPageBytes);
  families.gauge("atoll_mapped_page_size_bytes", "Size of the pages that the kernel really maps.")
      .sample(uint64_t{shared.header.real_page_bytes});
}

}  // namespace

std::vector<prometheus::MetricFamily> NodeMetrics::Collect() const {
  MetricFamilies families({{"node", std::to_string(node_)}});
  add_transactions(families, metrics_);
  add_locality(families, metrics_);
  for (const PlainCounter& plain : kPlainCounters) {
    families.counter(plain.name, plain.help).sample(sum_counter(metrics_, plain.counter));
  }
  add_loggers(families, {metrics_.loggers, shared_.logger_count});
  if (shared_.logger_count != 0) {
    add_snapshot_cache(families, metrics_);
    add_gleaner(families, metrics_.gleaner);
    add_device(families, metrics_.device);
  }
  add_sessions(families, metrics_.sessions);
  add_gauges(families, shared_);
  return families.take();
}

}  // namespace atolldb
