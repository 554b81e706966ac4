#include "soc/node/node_segments.h"

#include <string>

#include "shared/memory/segment_file.h"
#include "shared/metrics/worker_metrics.h"

namespace atolldb {

TransactionLimits transaction_limits(const Config& config) {
  TransactionLimits limits;
  limits.read_set = config.memory.read_set;
  limits.write_set = config.memory.write_set;
  limits.pointer_set = config.memory.pointer_set;
  limits.page_version_set = config.memory.page_version_set;
  limits.log_buffer = config.memory.log_buffer;
  return limits;
}

NodeSharedLayout shared_layout(const Config& config, uint32_t node) {
  NodeSharedLayout layout;
  layout.worker_count = config.nodes[node].workers;
  layout.node_count = static_cast<uint32_t>(config.nodes.size());
  layout.blocks_per_slot = lock_blocks_for(config.memory.write_set);
  return layout;
}

uint64_t local_offset(const TransactionLimits& limits, uint32_t ordinal) {
  // The first page holds the segment's header.
  return kPageBytes + ordinal * limits.local_bytes();
}

NodeSegmentSizes node_segment_sizes(const Config& config, uint32_t node) {
  const NodeSharedLayout layout = shared_layout(config, node);
  NodeSegmentSizes sizes;
  sizes.shared = round_to_segment(layout.bytes());
  sizes.pool = round_to_segment(config.memory.volatile_pool);
  sizes.local = round_to_segment(local_offset(transaction_limits(config), layout.worker_count));
  sizes.metrics = round_to_segment(MetricsSegment::bytes(layout.slot_count()));
  return sizes;
}

Result<void> check_node_limits(const Config& config) {
  for (size_t node = 0; node < config.nodes.size(); ++node) {
    if (config.nodes[node].workers <= kMaxWorkersPerNode) continue;
    return make_error(ExitCode::config, "node[" + std::to_string(node) + "].workers: " +
                                            std::to_string(config.nodes[node].workers) +
                                            " are more than a node has slots for: use at most " +
                                            std::to_string(kMaxWorkersPerNode));
  }
  if (config.memory.write_set > kMaxWriteSet) {
    return make_error(ExitCode::config,
                      "memory.write_set: " + std::to_string(config.memory.write_set) +
                          " entries are more than lock blocks can be named: use "
                          "at most " +
                          std::to_string(kMaxWriteSet));
  }
  return {};
}

}  // namespace atolldb
