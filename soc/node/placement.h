// Placement of a cluster's node on the machine: its NUMA node and CPUs.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/config/config.h"
#include "shared/config/machine.h"

namespace atolldb {

/// Returns the NUMA node that provides the memory: the configured one, or one in turn; -1 if the
/// machine has only one.
int32_t numa_node_of(const Config& config, uint32_t node, const Machine& machine);

/// Returns the CPUs that this worker may run on; empty: any.
std::vector<int32_t> worker_cpus(const Config& config, uint32_t node, uint32_t ordinal,
                                 const Machine& machine);

}  // namespace atolldb
