// Which NUMA node and CPUs of the machine a node of the cluster uses.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/config/config.h"
#include "shared/config/machine.h"

namespace atolldb {

/// The NUMA node that gives memory: as configured, or in turn; -1 when the machine has only one.
int32_t numa_node_of(const Config& config, uint32_t node, const Machine& machine);

/// The CPUs that this worker may run on; empty: any.
std::vector<int32_t> worker_cpus(const Config& config, uint32_t node, uint32_t ordinal,
                                 const Machine& machine);

}  // namespace atolldb
