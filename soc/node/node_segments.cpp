#include "soc/node/node_segments.h"

#include <numa.h>

#include "shared/base/check.h"
#include "shared/config/job_threads.h"
#include "shared/memory/segment_file.h"
#include "shared/memory/worker_metrics.h"

namespace atolldb {

TransactionLimits transaction_limits(const Config& config) {
  TransactionLimits limits;
  limits.read_set = config.memory.read_set;
  limits.write_set = config.memory.write_set;
  limits.pointer_set = config.memory.pointer_set;
  limits.page_version_set = config.memory.page_version_set;
  limits.log_buffer = config.memory.log_buffer;
  limits.is_logged = config.durability.mode != DurabilityMode::off;
  return limits;
}

NodeSharedLayout shared_layout(const Config& config, uint32_t node) {
  CHECK(node < config.nodes.size());
  NodeSharedLayout layout;
  layout.worker_count = config.nodes[node].workers;
  layout.node_count = static_cast<uint32_t>(config.nodes.size());
  if (config.durability.mode != DurabilityMode::off) {
    layout.logger_count = config.nodes[node].loggers;
  }
  return layout;
}

uint64_t local_offset(const TransactionLimits& limits, uint32_t ordinal) {
  // Skips the first page, which holds the segment's header.
  return kPageBytes + ordinal * limits.local_bytes();
}

uint64_t inbox_offset(const Config& config, uint32_t reducer) {
  return reducer * config.memory.exchange + kPageBytes;
}

uint64_t inbox_bytes(const Config& config) {
  CHECK(config.memory.exchange > kPageBytes);
  return config.memory.exchange - kPageBytes;
}

NodeSegmentSizes node_segment_sizes(const Config& config, uint32_t node) {
  const NodeSharedLayout layout = shared_layout(config, node);
  NodeSegmentSizes sizes;
  sizes.shared = round_to_segment(layout.bytes());
  sizes.pool = round_to_segment(config.memory.volatile_pool);
  sizes.local = round_to_segment(local_offset(transaction_limits(config), layout.worker_count));
  sizes.metrics = round_to_segment(MetricsSegment::bytes(layout.slot_count()));
  const bool has_snapshots = config.durability.mode != DurabilityMode::off &&
                             config.durability.scheme == DurabilityScheme::gleaned;
  if (has_snapshots) {
    sizes.exchange = round_to_segment(config.memory.exchange * inbox_count(config.nodes[node]));
  }
  return sizes;
}

int32_t numa_node_of(const Config& config, uint32_t node, const Machine& machine) {
  if (!config.memory.numa_bind || machine.numa_nodes.size() < 2) return -1;
  const int32_t configured = config.nodes[node].numa_node;
  return configured >= 0 ? configured : machine.numa_nodes[node % machine.numa_nodes.size()];
}

std::vector<int32_t> worker_cpus(const Config& config, uint32_t node, uint32_t ordinal,
                                 const Machine& machine) {
  CHECK(ordinal < config.nodes[node].workers);
  const std::vector<int32_t>& configured = config.nodes[node].cpus;
  if (!configured.empty()) return {configured[ordinal % configured.size()]};
  const int32_t numa_node = numa_node_of(config, node, machine);
  if (numa_node < 0 || numa_available() < 0) return {};
  std::vector<int32_t> cpus;
  bitmask* mask = numa_allocate_cpumask();
  if (numa_node_to_cpus(numa_node, mask) == 0) {
    for (const int32_t cpu : machine.cpus) {
      if (numa_bitmask_isbitset(mask, static_cast<unsigned>(cpu))) cpus.push_back(cpu);
    }
  }
  numa_free_cpumask(mask);
  return cpus;
}

}  // namespace atolldb
