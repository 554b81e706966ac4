// The processors that snapshot jobs use.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/config/config.h"
#include "shared/config/machine.h"

namespace atolldb {

/// Returns whether the mappers and reducers of all nodes run on processors without workers. A node
/// whose `cpus` or `gleaner_cpus` are empty may use any processor.
bool has_dedicated_gleaner_cpus(const Config& config);

/// Returns the processors whose idle time a job may use, ascending. These are the processors in
/// `gleaner_cpus` of all nodes, or all processors if some node names none. Returns none if the
/// control group has a quota below the number of processors, because the job may not use idle time
/// beyond the quota.
std::vector<int32_t> watched_cpus(const Config& config, const Machine& machine);

}  // namespace atolldb
