// Sizes of a node's segments, from the config alone: the launcher makes the files by them, the node
// formats by them.
#pragma once

#include <cstdint>

#include "engine/transaction/worker_context.h"
#include "shared/config/config.h"
#include "shared/memory/node_layout.h"

namespace atolldb {

TransactionLimits transaction_limits(const Config& config);
NodeSharedLayout shared_layout(const Config& config, uint32_t node);

/// Start of worker `ordinal`'s part of the local segment.
uint64_t local_offset(const TransactionLimits& limits, uint32_t ordinal);

/// Where the inbox of a reducer is in the node's exchange segment: every inbox has a stride of
/// memory.exchange, of which the first page is left out (that of the first is the segment's
/// header).
uint64_t inbox_offset(const Config& config, uint32_t reducer);
uint64_t inbox_bytes(const Config& config);

/// All multiples of 2 MiB.
struct NodeSegmentSizes {
  uint64_t shared = 0;
  uint64_t pool = 0;
  uint64_t local = 0;
  uint64_t metrics = 0;
  uint64_t exchange = 0;  // 0: there is none, since there is no log
};
NodeSegmentSizes node_segment_sizes(const Config& config, uint32_t node);

}  // namespace atolldb
