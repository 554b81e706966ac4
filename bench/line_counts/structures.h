// Names of the structures of shared memory, for the report.
#pragma once

#include <cstddef>
#include <string>

#include "shared/memory/cluster_view.h"

namespace atolldb::bench {

/// Returns what the cache line at this address of a segment holds, for example
/// "tpcc_stock: array leaf, records". Lines of the same kind have the same name. The name is that
/// of the present content.
std::string structure_at(const ClusterView& view, const std::byte* line);

}  // namespace atolldb::bench
