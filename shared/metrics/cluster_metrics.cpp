#include "shared/metrics/cluster_metrics.h"

#include "shared/metrics/metric_families.h"

namespace atolldb {
namespace {

uint64_t ready_storages(const ControlSegment& control) {
  uint64_t count = 0;
  for (const StorageControl& storage : control.storages) {
    // Relaxed: only counted, nothing of it is read.
    const uint32_t state = storage.state.load(std::memory_order_relaxed);
    if (state == static_cast<uint32_t>(StorageState::ready)) ++count;
  }
  return count;
}

}  // namespace

std::vector<prometheus::MetricFamily> ClusterMetrics::Collect() const {
  MetricFamilies families({});
  // Acquire pairs with the coordinator's release when it changed the state.
  const auto state = static_cast<ClusterState>(control_.state.load(std::memory_order_acquire));
  const EpochBlock& epochs = control_.epochs;
  families.gauge("atoll_cluster_running", "1 while the cluster accepts transactions.")
      .sample(state == ClusterState::running ? 1.0 : 0.0);
  families.gauge("atoll_nodes", "Node processes of the cluster.")
      .sample(uint64_t{control_.node_count});
  families.gauge("atoll_storages", "Storages that procedures can use.")
      .sample(ready_storages(control_));
  families.counter("atoll_catalog_changes_total", "Storages created and dropped.")
      .sample(uint64_t{control_.catalog_version.load(std::memory_order_relaxed)});
  families.counter("atoll_coordinator_heartbeats_total", "Signs of life of the coordinator.")
      .sample(control_.heartbeat.load(std::memory_order_relaxed));
  families.gauge("atoll_epoch_interval_seconds", "Time from one epoch to the next.")
      .sample(control_.epoch_interval_us * 1e-6);
  families.gauge("atoll_epoch_current", "Epoch in which transactions commit now.")
      .sample(epochs.current.load(std::memory_order_relaxed));
  families
      .gauge("atoll_epoch_durable",
             "Latest epoch whose commits are all durable (with durability off: final).")
      .sample(epochs.durable.load(std::memory_order_relaxed));
  families.gauge("atoll_epoch_oldest_begin", "Oldest epoch in which a running thread began.")
      .sample(epochs.oldest_begin.load(std::memory_order_relaxed));
  return families.take();
}

}  // namespace atolldb
