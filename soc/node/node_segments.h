// Sizes, layout and placement of a node's segments and workers.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/transaction/worker_context.h"
#include "shared/config/config.h"
#include "shared/config/machine.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

// Sizes and layout depend only on the config, because two processes compute them: the launcher
// sizes the files, and the node formats the segments.
TransactionLimits transaction_limits(const Config& config);
NodeSharedLayout shared_layout(const Config& config, uint32_t node);

/// Returns the offset of worker `ordinal`'s part in the local segment.
uint64_t local_offset(const TransactionLimits& limits, uint32_t ordinal);

/// Returns the offset of a reducer's inbox in the node's exchange segment. The inboxes have a
/// stride of memory.exchange bytes. Each inbox begins after the first page of its stride. The first
/// page of the first stride is the segment's header; all others are unused.
uint64_t inbox_offset(const Config& config, uint32_t reducer);
uint64_t inbox_bytes(const Config& config);

/// Bytes of each segment; all are multiples of 2 MiB.
struct NodeSegmentSizes {
  uint64_t shared = 0;
  uint64_t pool = 0;
  uint64_t local = 0;
  uint64_t metrics = 0;
  uint64_t exchange = 0;  // 0: no such segment, because there is no log
};
NodeSegmentSizes node_segment_sizes(const Config& config, uint32_t node);

/// Returns the NUMA node that provides the memory: the configured one, or one chosen round robin if
/// none is configured. Returns -1 if the machine has only one NUMA node, or if memory.numa_bind is
/// false.
int32_t numa_node_of(const Config& config, uint32_t node, const Machine& machine);

/// Returns the CPUs that this worker may run on; empty: any.
std::vector<int32_t> worker_cpus(const Config& config, uint32_t node, uint32_t ordinal,
                                 const Machine& machine);

}  // namespace atolldb
